// The form of a tab: fields in a row, and one button. What is wrong with a field is said beside it when it is sent.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../ui";

/** A form whose work may take a while; meanwhile it cannot be sent again. */
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
