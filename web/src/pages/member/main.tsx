// Where a member's page begins.
import { render } from "preact";
import { startClock } from "../../clock";
import "../../styles/index.css";
import "../../theme";
import { Confirm, Toasts } from "../../ui";
import { startIdentity } from "./identity";
import MemberPage from "./index";

startClock();
startIdentity();
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
