// Entry point of the member's page.
import { render } from "preact";
import { startClock } from "../../clock";
import "../../styles/index.css";
import "../../theme";
import { Confirm, Toasts } from "../../ui";
import MemberPage from "./index";
import { startMemberToken } from "./member-token";

startClock();
startMemberToken();
const root = document.getElementById("app");
if (root) {
  render(
    <>
      <MemberPage />
      <Toasts />
      <Confirm />
    </>,
    root,
  );
}
