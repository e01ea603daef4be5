// Users.
import { texts } from "../../i18n";
import type { PageProps } from "../../router";
import { Empty, Page } from "../../ui";

const t = texts({ en: { title: "Users" }, zh: { title: "用户" } });

/** Users. */
export default function UsersPage(_props: PageProps) {
  return (
    <Page title={t.title}>
      <Empty />
    </Page>
  );
}
