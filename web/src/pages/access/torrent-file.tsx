// Adding a torrent by its .torrent file.
import { useRef, useState } from "preact/hooks";
import { Problem } from "../../api/client";
import type { Torrent } from "../../api/types";
import { clipped, visible } from "../../names";
import { attempt, Card, Check, confirm, Field, toast } from "../../ui";
import { AccessForm } from "./form";
import { t } from "./texts/torrents";
import { uploadTorrent } from "./upload";

/** The limit of the server. */
const FILE_BYTES_MAX = 32 * 1024 * 1024;

export function AddFile(props: { refresh(): void }) {
  const [file, setFile] = useState<File | null>(null);
  const [pending, setPending] = useState(false);
  const [error, setError] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const submit = async () => {
    const fault = file === null ? t.fileMissing : file.size > FILE_BYTES_MAX ? t.fileTooLarge : "";
    setError(fault);
    if (file === null || fault) return;
    await attempt(async () => {
      const torrent = await addFile(file, !pending);
      if (torrent === null) return;
      toast(t.added(visible(clipped(torrent.name, 80))));
      setFile(null);
      if (input.current) input.current.value = "";
    });
    props.refresh();
  };
  return (
    <Card title={t.addFile}>
      <AccessForm action={t.addFileDo} onSubmit={submit}>
        <Field label={t.file} hint={t.fileHint} error={error}>
          <input ref={input} class="input" type="file" accept=".torrent,application/x-bittorrent" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
        </Field>
        <Check label={t.pending} hint={t.pendingHint} checked={pending} onChange={setPending} />
      </AccessForm>
    </Card>
  );
}

/** Null if the torrent is public and the operator declined. */
async function addFile(file: File, approved: boolean): Promise<Torrent | null> {
  try {
    return await uploadTorrent(file, { approved, allowPublic: false });
  } catch (thrown) {
    if (!(thrown instanceof Problem) || thrown.code !== "public_torrent") throw thrown;
  }
  if (!(await confirm({ title: t.publicTitle, body: t.publicBody, action: t.publicDo, tone: "danger" }))) return null;
  return uploadTorrent(file, { approved, allowPublic: true });
}
