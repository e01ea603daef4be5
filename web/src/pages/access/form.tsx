// The form of a tab: fields and one button. Faults are shown at their fields on submit.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../ui";

/** Cannot be submitted again while `onSubmit` is running. */
export function AccessForm(props: { action: string; onSubmit(): Promise<unknown>; children: ComponentChildren }) {
  const [isBusy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    try {
      await props.onSubmit();
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      class="access-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy) void submit();
      }}
    >
      <div class="access-fields">{props.children}</div>
      <div>
        <Button type="submit" tone="primary" busy={isBusy}>
          {props.action}
        </Button>
      </div>
    </form>
  );
}
