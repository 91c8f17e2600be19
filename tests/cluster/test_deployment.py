"""docs/deployment/: the programs accept the files that the page offers as a start."""
import json
import re
import shutil
import subprocess

import pytest
from support import cluster, s3
from support import redis as rd
from support.server import BINARY, ROOT
from support.timing import SLACK

yaml = pytest.importorskip("yaml")
FOLDER = ROOT / "docs/deployment"


def compose():
    return yaml.safe_load((FOLDER / "docker-compose.yml").read_text())


def test_the_balancer_takes_its_configuration():
    done = subprocess.run([shutil.which("haproxy", path=cluster.SBIN), "-c", "-f", FOLDER / "haproxy.cfg"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_parts_know_each_other():
    services = compose()["services"]
    settings = json.loads((FOLDER / "reprise.json").read_text())
    balancer = (FOLDER / "haproxy.cfg").read_text()
    servers = dict(re.findall(r"^  server (\w+) (\S+)$", balancer, re.M))
    assert servers == {name: f"{name}:{settings['port']}" for name, service in services.items() if service.get("image") == "reprise" and name != "migrate"}
    (published, port), = (line.removeprefix("127.0.0.1:").split(":") for line in services["balancer"]["ports"])
    assert f"bind :{port}\n" in balancer and f"127.0.0.1:{published}" in settings["public_hosts"]
    assert re.search(r"hdr Host (\S+)", balancer).group(1) in settings["public_hosts"]
    for variable in re.findall(r"\$\{(\w+)\}", json.dumps(settings)):
        assert variable in services["reprise1"]["environment"]
    for address in (settings["files"]["endpoint"], settings["redis"]["url"]):
        assert re.search(r"(?:@|//)(\w+):\d+$", address).group(1) in services
    assert "requirepass" in " ".join(services["redis"]["command"])
    assert settings["workspace_mode"] == "shared" and f"workspace:{settings['workspace']}" in services["reprise1"]["volumes"]
    assert {"libpq5", "libhiredis0.14"} <= set(services["reprise1"]["build"]["dockerfile_inline"].split())
    for path in (settings["token_file"], settings["key_file"]):
        assert any(path.startswith(volume.split(":")[1]) for volume in services["reprise1"]["volumes"])


@pytest.mark.skipif(not s3.is_installed() or not rd.PROGRAM.exists(), reason="python3-swift or Redis is NOT INSTALLED")
@pytest.mark.limit(90)
def test_a_server_takes_the_configuration(make_home, make_server, postgres):
    """The configuration as written, except for the paths of a container."""
    home = make_home()
    settings = json.loads((FOLDER / "reprise.json").read_text())
    token = home.path / "token"
    token.write_text("t" * 32)
    token.chmod(0o600)
    environment = {"DATABASE_URL": postgres.new_database(), "S3_ACCESS_KEY": s3.ACCESS_KEY, "S3_SECRET_KEY": s3.SECRET_KEY, "REDIS_PASSWORD": "for-the-test"}
    swift, redis = s3.Swift(), rd.Redis()
    try:
        redis.command("config", "set", "requirepass", environment["REDIS_PASSWORD"])
        settings["redis"]["url"] = re.sub(r"@.*", f"@127.0.0.1:{redis.port}", settings["redis"]["url"])
        bucket = s3.Bucket(swift, settings["files"]["bucket"])
        settings["files"]["endpoint"] = swift.endpoint
        for name in ("port", "data_dir", "workspace"):
            del settings[name]  # passed as flags
        settings |= {"token_file": str(token), "key_file": str(home.keys), "host": "127.0.0.1"}
        file = home.path / "settings.json"
        file.write_text(json.dumps(settings))

        def reprise(*words):
            return subprocess.run([str(BINARY), *words, "--config", str(file)], env=home.environment(**environment), cwd=home.path, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=20 * SLACK, check=False)
        made = reprise("db", "init")
        assert made.returncode == 0, made.stderr
        server = make_server(home=home, config=json.dumps(settings), environment=environment, token="t" * 32)
        assert "failing" not in server.client.get("/readyz").expect(200).json
        tools = server.client.get("/tools").json["tools"]
        assert {"write_file", "run_shell"} <= {tool["name"] for tool in tools}
        server.client.turn("c", "what is 2+2?")
        server.client.request("POST", "/chats/c/files?name=a.txt", b"text", headers={"Content-Type": "text/plain"}).expect(201)
        assert bucket.keys()
        checked = reprise("doctor", "--port", "0", "--data-dir", str(home.data))
        assert checked.returncode == 0, checked.stdout + checked.stderr
    finally:
        redis.close()
        swift.close()
