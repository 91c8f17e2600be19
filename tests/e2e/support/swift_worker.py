"""One process of OpenStack Swift, with its files in a folder of the test. Not imported; support/s3.py runs it."""
import sys

import eventlet

folder, name = sys.argv[1:]

# Swift looks for this file under /etc only.
from swift.common import utils  # noqa: E402

utils.SWIFT_CONF_FILE = f"{folder}/swift.conf"

if name == "rings":
    from swift.common.ring import RingBuilder
    for kind, port in zip(("account", "container", "object"), open(f"{folder}/ports").read().split()):
        builder = RingBuilder(part_power=1, replicas=1, min_part_hours=0)
        builder.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": int(port), "device": "disk", "weight": 1})
        builder.rebalance()
        builder.get_ring().save(f"{folder}/{kind}.ring.gz")
else:
    eventlet.monkey_patch()
    from swift.common.wsgi import run_wsgi
    sys.exit(run_wsgi(f"{folder}/{name}.conf", f"{name}-server", verbose=False, daemon=False))
