"""A libtorrent session with one torrent, driven by JSON lines.

One argument, a JSON object: torrent, save_path, listen, upload_bytes_per_s. Then one command a line on standard input, and one answer a
line on standard output:

    {"do": "status"}      {"whole": true, "complaint": "unknown passkey"}
    {"do": "reannounce"}  {}
    {"do": "leave"}       {}

It ends when its standard input does.
"""

import json
import sys
import time

try:
    import libtorrent
except ImportError:
    print(json.dumps({"missing": "libtorrent for Python"}), flush=True)
    sys.exit(1)


def start(settings):
    session = libtorrent.session({
        "listen_interfaces": settings["listen"],
        "enable_dht": False,
        "enable_lsd": False,
        "enable_upnp": False,
        "enable_natpmp": False,
        "enable_incoming_utp": False,
        "enable_outgoing_utp": False,
        # All clients of a test share one address.
        "allow_multiple_connections_per_ip": True,
        # By default it announces every five minutes at most, and lets others have something every 15 seconds.
        "min_announce_interval": 1,
        "unchoke_interval": 1,
        "alert_mask": libtorrent.alert.category_t.tracker_notification
        | libtorrent.alert.category_t.error_notification,
    })
    params = libtorrent.add_torrent_params()
    params.ti = libtorrent.torrent_info(settings["torrent"])
    params.save_path = settings["save_path"]
    torrent = session.add_torrent(params)
    # The limit of the session does not apply to peers on loopback; that of a torrent does.
    torrent.set_upload_limit(settings["upload_bytes_per_s"])
    return session, torrent


class Complaints:
    """What the tracker last said that a user should know; a good reply takes it back."""

    def __init__(self):
        self.last = ""

    def read(self, session):
        for alert in session.pop_alerts():
            print(alert.message(), file=sys.stderr, flush=True)
            if isinstance(alert, libtorrent.tracker_error_alert):
                self.last = alert.message()
            elif isinstance(alert, libtorrent.tracker_warning_alert):
                self.last = alert.message()
            elif isinstance(alert, libtorrent.tracker_reply_alert):
                self.last = ""
        return self.last


def is_announcing(torrent):
    endpoints = [endpoint for tracker in torrent.trackers() for endpoint in tracker.get("endpoints", [])]
    return any(state.get("updating") for endpoint in endpoints for state in endpoint.get("info_hashes", []))


def wait_until_idle(torrent):
    deadline = time.monotonic() + 15
    while is_announcing(torrent) and time.monotonic() < deadline:
        time.sleep(0.05)


def main():
    session, torrent = start(json.loads(sys.argv[1]))
    complaints = Complaints()
    for line in sys.stdin:
        command = json.loads(line)["do"]
        answer = {}
        if command == "status":
            answer = {"whole": torrent.status().is_seeding, "complaint": complaints.read(session)}
        elif command == "reannounce":
            torrent.force_reannounce(0, -1, libtorrent.reannounce_flags_t.ignore_min_interval)
        elif command == "leave":
            # The "stopped" of a pause is not sent while another announce has no reply yet.
            wait_until_idle(torrent)
            session.pause()
        print(json.dumps(answer), flush=True)


main()
