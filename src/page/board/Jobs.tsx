import { useCallback, useEffect, useState } from "react";
import { Code } from "../parts/Code";
import { Icon } from "../parts/Icon";
import { ago, useNow } from "../parts/time";
import { spelled } from "../chat/hidden";
import { cache } from "../store/cache";
import { attempt, useSelect } from "../store/state";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { Job, JobOutput, JobPort, Jobs as JobList } from "../wire";
import { call, chatPath, get } from "../wire/api";

const MOST_SHOWN = 65_536; // characters of output
const EVERY = 1_500; // milliseconds

// Calls while `running` and somebody looks: the server tells of the beginning and end of a job, but not of output and ports.
function useEvery(running: boolean, look: () => Promise<void>): void {
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => document.hidden || void look(), EVERY);
    return () => clearInterval(timer);
  }, [running, look]);
}

// The background jobs of a chat.
export function Jobs({ chat }: { chat: string }) {
  const [jobs, setJobs] = useState<Job[]>([]);
  const changes = useSelect(() => cache.jobChanges);
  const path = `${chatPath(chat)}/jobs`;
  const read = useCallback(() => get<JobList>(path).then((found) => setJobs(found.jobs), () => undefined), [path]);
  useEffect(() => void read(), [read, changes]);
  const running = jobs.some((job) => job.running);
  useEvery(running, read);
  const now = useNow(running);
  if (jobs.length === 0) return null;
  return (
    <>
      <h2>{t.jobs}</h2>
      <ul className="plain-list" data-testid="jobs">
        {[...jobs].reverse().map((job) => <Item key={job.id} job={job} path={`${path}/${job.id}`} now={now} read={read} />)}
      </ul>
    </>
  );
}

function Item({ job, path, now, read }: { job: Job; path: string; now: number; read: () => Promise<void> }) {
  const [open, setOpen] = useState(false);
  const took = job.started_at ? ago(job.started_at, job.ended_at ? Date.parse(job.ended_at) : now) : "";
  const state = job.running ? t.running : v.jobEnd(job.end ?? "", job.status);
  const send = (what: string): void => void attempt(async () => {
    await call("POST", `${path}/${what}`);
    await read();
  });
  return (
    <li className="line" data-testid="job" data-job={job.id} data-running={job.running}>
      <div className="row">
        <button type="button" className="quiet grow job-name" aria-expanded={open} data-testid="job-output-toggle" onClick={() => setOpen(!open)}>
          <Icon name={open ? "down" : "forward"} size={14} /><code className="title">{spelled(job.command)}</code>
        </button>
        <span className="faint" data-testid="job-state">{[state, took].filter(Boolean).join(", ")}</span>
        {job.running && <button type="button" className="danger" data-testid="stop-job" aria-label={`${t.stop}: ${job.command}`} onClick={() => send("stop")}>{t.stop}</button>}
      </div>
      {job.ports?.map((port) => <Port key={port.port} port={port} send={send} />)}
      {open && <Output job={job} path={path} />}
    </li>
  );
}

function Port({ port, send }: { port: JobPort; send: (what: string) => void }) {
  const change = (verb: string, text: string): JSX.Element =>
    <button type="button" className="quiet tiny" data-testid={`${verb}-port`} aria-label={`${text}: ${port.port}`} onClick={() => send(`ports/${port.port}/${verb}`)}>{text}</button>;
  return (
    <p className="row job-port" data-testid="job-port" data-port={port.port} data-state={port.state}>
      <Icon name="plug" size={14} /><span>{v.port(port.port)}</span>
      {port.url && <a href={port.url} target="_blank" rel="noopener noreferrer" data-testid="port-link">{port.url}</a>}
      {port.state === "closed" ? change("open", v.openPort) : port.state === "open" ? change("close", v.closePort) : null}
    </p>
  );
}

// The end of the output, which grows.
function Output({ job, path }: { job: Job; path: string }) {
  const [read, setRead] = useState({ text: "", next: 0 });
  const more = useCallback(async (): Promise<void> => {
    const got = await get<JobOutput>(`${path}?after=${read.next}`).catch(() => null);
    if (got && got.next > read.next) setRead({ text: (got.left_out > 0 ? got.output : read.text + got.output).slice(-MOST_SHOWN), next: got.next });
  }, [path, read]);
  useEffect(() => void more(), [job.running, job.output_bytes]);
  return (
    <div className="terminal">
      {read.text === "" ? <p className="hint">{t.noOutput}</p> : <Code text={read.text} isTerminal live={job.running} testid="job-output" />}
      {job.kept && <p className="hint">{job.kept}</p>}
    </div>
  );
}
