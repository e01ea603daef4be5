// One torrent.
import { texts } from "../../i18n";
import type { PageProps } from "../../router";
import { Empty, Page } from "../../ui";

const t = texts({ en: { title: "Torrent" }, zh: { title: "种子" } });

/** One torrent. */
export default function TorrentPage(_props: PageProps) {
  return (
    <Page title={t.title}>
      <Empty />
    </Page>
  );
}
