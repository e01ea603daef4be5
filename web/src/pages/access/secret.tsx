// Secrets: hidden until requested.
import { useState } from "preact/hooks";
import { Button, CopyButton } from "../../ui";
import { t } from "./texts";

/** Can be copied without being shown. */
export function Secret(props: { value: string; label: string }) {
  const [isShown, setShown] = useState(false);
  return (
    <span class="secret">
      <code>{isShown ? props.value : `${props.value.slice(0, 4)}${"•".repeat(8)}`}</code>
      <Button small tone="quiet" onClick={() => setShown(!isShown)} label={`${isShown ? t.hide : t.show}: ${props.label}`}>
        {isShown ? t.hide : t.show}
      </Button>
      <CopyButton text={props.value} />
    </span>
  );
}

/** A secret that was just created; shown until it is closed. */
export function NewSecret(props: { title: string; warning: string; value: string; onClose(): void }) {
  return (
    <div class="new-secret" role="status">
      <strong>{props.title}</strong>
      <p class="secret">
        <code>{props.value}</code>
        <CopyButton text={props.value} />
      </p>
      <p class="dim">{props.warning}</p>
      <Button small onClick={props.onClose}>
        {t.done}
      </Button>
    </div>
  );
}
