import { useState } from "react";
import { t } from "../texts";
import { v } from "../texts_of_views";
import { ApiError, logIn } from "../wire/api";

export function LogIn({ why }: { why: string }) {
  const [token, setToken] = useState("");
  const [wrong, setWrong] = useState("");
  return (
    <main className="login" data-testid="login">
      <h1>{t.name}</h1>
      <form onSubmit={(e) => {
        e.preventDefault();
        logIn(token.trim()).then(() => location.reload(), (error) => setWrong(error instanceof ApiError ? v.wrongToken : t.offline));
      }}>
        <p>{v.login}</p>
        {why && <p>{v.notLetIn(why)}</p>}
        <label className="field"><span>{v.token}</span><input type="password" autoFocus autoComplete="current-password" data-testid="token" value={token}
          onChange={(e) => setToken(e.target.value)} /></label>
        {wrong && <p className="bad" role="alert">{wrong}</p>}
        <button type="submit" className="primary" data-testid="log-in">{v.logIn}</button>
      </form>
    </main>
  );
}
