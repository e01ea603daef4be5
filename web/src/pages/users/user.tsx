// One user.
import { texts } from "../../i18n";
import type { PageProps } from "../../router";
import { Empty, Page } from "../../ui";

const t = texts({ en: { title: "User" }, zh: { title: "用户" } });

/** One user. */
export default function UserPage(_props: PageProps) {
  return (
    <Page title={t.title}>
      <Empty />
    </Page>
  );
}
