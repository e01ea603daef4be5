// Who changed what.
import { texts } from "../../i18n";
import type { PageProps } from "../../router";
import { Empty, Page } from "../../ui";

const t = texts({ en: { title: "Audit trail" }, zh: { title: "审计记录" } });

/** Who changed what. */
export default function AuditPage(_props: PageProps) {
  return (
    <Page title={t.title}>
      <Empty />
    </Page>
  );
}
