// One's own status: how others see it, and setting it, with a few words and an end.
import { useEffect, useState } from "preact/hooks";
import { nowS } from "../../clock";
import { attempt, Button, Card, Name, Select, StatusDot, TextField, Time } from "../../ui";
import { connectionState, declare, me, undeclare } from "./presence";
import { t } from "./texts";

const STATUSES = ["online", "away", "busy", "invisible"] as const;
type Declared = (typeof STATUSES)[number];

const LENGTHS = { cleared: null, half: 1800, hour: 3600, four: 4 * 3600, day: 24 * 3600 } as const;
type Length = keyof typeof LENGTHS;

/** What a text may have: the server's own bound is in bytes, and says so when it is passed. */
const TEXT_CHARACTERS_MAX = 140;

/** One's own status. */
export function StatusCard() {
  const mine = me.value;
  const [status, setStatus] = useState<Declared>("online");
  const [text, setText] = useState("");
  const [length, setLength] = useState<Length>("cleared");
  const [isTouched, setTouched] = useState(false);
  const isConnected = connectionState.value === "connected";

  // What another device has declared since is what is here, too; but nothing is taken from under somebody's fingers.
  useEffect(() => {
    if (isTouched) return;
    setText(mine?.text ?? "");
    const declared = STATUSES.find((one) => one === mine?.status);
    if (declared) setStatus(declared);
  }, [mine?.text, mine?.status, isTouched]);

  const save = async () => {
    const seconds = LENGTHS[length];
    if (await attempt(() => declare(status, text.trim(), seconds === null ? null : nowS.value + seconds))) setTouched(false);
  };
  const clear = async () => {
    if (await attempt(undeclare)) setTouched(false);
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
        {mine?.status === "invisible" && <span class="dim">{t.hidden}</span>}
      </div>
      <form
        class="member-status"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <fieldset class="choices">
          <legend class="visually-hidden">{t.choose}</legend>
          {STATUSES.map((one) => (
            <label key={one} class="choice">
              <input type="radio" name="status" value={one} checked={status === one} onChange={() => touch(() => setStatus(one))} />
              <span>
                <StatusDot status={one} />
              </span>
            </label>
          ))}
        </fieldset>
        <div class="member-words">
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
