// Actions on items of the queue. Irreversible ones ask for confirmation.
import { api } from "../../api/client";
import type { QueueItem } from "../../api/types";
import { link } from "../../router";
import { can } from "../../session";
import { attempt, Button, confirm, toast } from "../../ui";
import { torrentName, userName } from "./description";
import { t } from "./texts";

export function Actions(props: { item: QueueItem; refresh(): void }) {
  const { item } = props;
  return (
    <span class="queue-actions">
      {item.user && <UserLink item={item} />}
      {can("admin") && item.kind === "approval" && <Approval {...props} />}
      {can("admin") && item.dead_letter && <DeadLetterActions {...props} />}
      {can("admin") && !item.dead_letter && item.user?.enabled != null && <EnableButton {...props} />}
    </span>
  );
}

function UserLink(props: { item: QueueItem }) {
  const { item } = props;
  const tab = { risk: "risks", hit_and_run: "hit-and-run", approval: undefined, dead_letter: "why", failed_entry: "why" }[item.kind];
  return (
    <a class="button button-small" href={link(`/users/${item.user?.id}`, { tab })} aria-label={`${t.showUser}: ${userName(item)}`}>
      {t.showUser}
    </a>
  );
}

function Approval(props: { item: QueueItem; refresh(): void }) {
  const name = torrentName(props.item);
  const path = { id: String(props.item.torrent?.id) };
  const approve = async () => {
    if (!(await confirm({ title: t.approveTitle(name), body: t.approveBody, action: t.approve }))) return;
    await attempt(() => api.patch("/api/v1/torrents/{id}", { path, body: { approved: true } }), t.approved(name));
    props.refresh();
  };
  const reject = async () => {
    if (!(await confirm({ title: t.rejectTitle(name), body: t.rejectBody, action: t.reject, tone: "danger" }))) return;
    await attempt(() => api.del("/api/v1/torrents/{id}", { path }), t.rejected(name));
    props.refresh();
  };
  return (
    <>
      <Button small tone="primary" onClick={approve} label={`${t.approve}: ${name}`}>
        {t.approve}
      </Button>
      <Button small tone="danger" onClick={reject} label={`${t.reject}: ${name}`}>
        {t.reject}
      </Button>
    </>
  );
}

function DeadLetterActions(props: { item: QueueItem; refresh(): void }) {
  const { item } = props;
  const id = item.dead_letter?.id ?? "";
  const lane = item.kind === "failed_entry" ? "failed" : "dlq";
  const run = async (path: "/api/v1/dead-letters/{lane}/replay" | "/api/v1/dead-letters/{lane}/drop", done: string) => {
    await attempt(async () => {
      const { count } = await api.post(path, { path: { lane }, body: { ids: [id] } });
      toast(count > 0 ? done : t.notFound, count > 0 ? "ok" : "info");
    });
    props.refresh();
  };
  const drop = async () => {
    if (await confirm({ title: t.dropTitle, body: t.dropBody, action: t.drop, tone: "danger" })) await run("/api/v1/dead-letters/{lane}/drop", t.dropped);
  };
  return (
    <>
      <Button small onClick={() => run("/api/v1/dead-letters/{lane}/replay", t.replayed)} label={`${t.replay}: ${id}`}>
        {t.replay}
      </Button>
      <Button small tone="danger" onClick={drop} label={`${t.drop}: ${id}`}>
        {t.drop}
      </Button>
    </>
  );
}

function EnableButton(props: { item: QueueItem; refresh(): void }) {
  const { item } = props;
  const name = userName(item);
  const isEnabled = item.user?.enabled === true;
  const change = async () => {
    if (isEnabled && !(await confirm({ title: t.disableTitle(name), body: t.disableBody, action: t.disable, tone: "danger" }))) return;
    const work = () => api.patch("/api/v1/users/{id}", { path: { id: item.user?.id ?? 0 }, body: { enabled: !isEnabled } });
    await attempt(work, isEnabled ? t.disabledDone(name) : t.enabledDone(name));
    props.refresh();
  };
  const action = isEnabled ? t.disable : t.enable;
  return (
    <Button small tone={isEnabled ? "danger" : "plain"} onClick={change} label={`${action}: ${name}`}>
      {action}
    </Button>
  );
}
