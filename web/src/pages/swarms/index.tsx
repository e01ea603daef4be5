// Torrents and their swarms.
import { texts } from "../../i18n";
import type { PageProps } from "../../router";
import { Empty, Page } from "../../ui";

const t = texts({ en: { title: "Swarms" }, zh: { title: "种子群" } });

/** Torrents and their swarms. */
export default function SwarmsPage(_props: PageProps) {
  return (
    <Page title={t.title}>
      <Empty />
    </Page>
  );
}
