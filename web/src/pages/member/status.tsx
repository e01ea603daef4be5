// The member's status: display and form.
import { useEffect, useState } from "preact/hooks";
import { nowS } from "../../clock";
import { attempt, Button, Card, Name, Select, StatusDot, TextField, Time } from "../../ui";
import { clearStatus, connectionState, me, setStatus as saveStatus } from "./presence";
import { t } from "./texts";

const STATUSES = ["online", "away", "busy", "invisible"] as const;
type Declared = (typeof STATUSES)[number];

const LENGTHS = { cleared: null, half: 1800, hour: 3600, four: 4 * 3600, day: 24 * 3600 } as const;
type Length = keyof typeof LENGTHS;

/** The server's limit is in bytes and is reported as an error. */
const TEXT_CHARACTERS_MAX = 140;

export function StatusCard() {
  const mine = me.value;
  const [status, setStatus] = useState<Declared>("online");
  const [text, setText] = useState("");
  const [length, setLength] = useState<Length>("cleared");
  const [isTouched, setTouched] = useState(false);
  const isConnected = connectionState.value === "connected";

  // Follows changes of other devices, unless the form is being edited.
  useEffect(() => {
    if (isTouched) return;
    setText(mine?.text ?? "");
    const declared = STATUSES.find((one) => one === mine?.status);
    if (declared) setStatus(declared);
  }, [mine?.text, mine?.status, isTouched]);

  const save = async () => {
    const seconds = LENGTHS[length];
    if (await attempt(() => saveStatus(status, text.trim(), seconds === null ? null : nowS.value + seconds))) setTouched(false);
  };
  const clear = async () => {
    if (await attempt(clearStatus)) setTouched(false);
  };
  const touch = (change: () => void) => {
    setTouched(true);
    change();
  };
  return (
    <Card title={t.status}>
      <div class="member-now" aria-live="polite">
        {mine ? <StatusDot status={mine.status} /> : <span class="dim">{t.connecting}</span>}
        {mine?.text && <Name text={mine.text} wrap />}
        {mine?.until && (
          <span class="dim">
            {t.endsAt} <Time at={mine.until} />
          </span>
        )}
        {mine?.status === "invisible" && <span class="dim">{t.invisible}</span>}
      </div>
      <form
        class="member-status"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <fieldset class="status-options">
          <legend class="visually-hidden">{t.statusLegend}</legend>
          {STATUSES.map((one) => (
            <label key={one} class="status-option">
              <input type="radio" name="status" value={one} checked={status === one} onChange={() => touch(() => setStatus(one))} />
              <span>
                <StatusDot status={one} />
              </span>
            </label>
          ))}
        </fieldset>
        <div class="member-text">
          <TextField label={t.text} value={text} onInput={(typed) => touch(() => setText(typed))} placeholder={t.textHint} maxLength={TEXT_CHARACTERS_MAX} />
          <Select label={t.until} value={length} options={lengthOptions()} onChange={(chosen: Length) => setLength(chosen)} />
        </div>
        <div class="member-buttons">
          <Button onClick={clear} disabled={!isConnected}>
            {t.clear}
          </Button>
          <Button type="submit" tone="primary" disabled={!isConnected}>
            {t.set}
          </Button>
        </div>
      </form>
    </Card>
  );
}

function lengthOptions(): { value: Length; label: string }[] {
  return [
    { value: "cleared", label: t.untilCleared },
    { value: "half", label: t.untilHalf },
    { value: "hour", label: t.untilHour },
    { value: "four", label: t.untilFour },
    { value: "day", label: t.untilDay },
  ];
}
