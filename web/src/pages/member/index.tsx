// A member's own page.
import { texts } from "../../i18n";
import { Empty, Page } from "../../ui";

const t = texts({ en: { title: "My page" }, zh: { title: "我的页面" } });

/** A member's own page. */
export default function MemberPage() {
  return (
    <main class="alone">
      <Page title={t.title}>
        <Empty />
      </Page>
    </main>
  );
}
