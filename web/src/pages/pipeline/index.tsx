// The journal and its views.
import { texts } from "../../i18n";
import type { PageProps } from "../../router";
import { Empty, Page } from "../../ui";

const t = texts({ en: { title: "Pipeline" }, zh: { title: "流水线" } });

/** The journal and its views. */
export default function PipelinePage(_props: PageProps) {
  return (
    <Page title={t.title}>
      <Empty />
    </Page>
  );
}
