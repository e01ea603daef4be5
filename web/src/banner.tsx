// What is wrong with the connection, above everything else. Says so when the server comes back.
import { useSignal, useSignalEffect } from "@preact/signals";
import { clockTime, duration } from "./format";
import { texts } from "./i18n";
import { connection, dataAgeS, dataAtMs, returns } from "./live";

const t = texts({
  en: {
    away: (since: string) => `The server cannot be reached. The figures are from ${since}`,
    age: (age: string) => `, ${age} ago. Trying again…`,
    back: "The server is back.",
  },
  zh: {
    away: (since) => `无法连接服务器。当前显示的是 ${since} 的数据`,
    age: (age) => `，${age}之前。正在重试…`,
    back: "服务器已恢复。",
  },
});

const BACK_SHOWN_MS = 5000;

/** The banner: nothing while all is well. */
export function Banner() {
  const isBack = useSignal(false);
  useSignalEffect(() => {
    if (returns.value === 0) return;
    isBack.value = true;
    const timer = setTimeout(() => {
      isBack.value = false;
    }, BACK_SHOWN_MS);
    return () => clearTimeout(timer);
  });
  const isAway = connection.value === "away";
  return (
    <div role="status" aria-live="polite">
      {isAway && (
        <p class="banner tone-bad">
          {t.away(clockTime(dataAtMs.value))}
          {/* Each second another text: not to be read aloud. */}
          <span aria-hidden="true">{t.age(duration(dataAgeS()))}</span>
        </p>
      )}
      {!isAway && isBack.value && <p class="banner tone-ok">{t.back}</p>}
    </div>
  );
}
