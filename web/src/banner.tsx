// What is wrong with the connection, above everything else. Says so when the server comes back.
import { useSignal, useSignalEffect } from "@preact/signals";
import { clockTime } from "./format";
import { texts } from "./i18n";
import { awaySinceMs, connection, returns } from "./live";

const t = texts({
  en: {
    away: (since: string) => `The server has not answered since ${since}. What you see is from before. Trying again…`,
    back: "The server is back.",
  },
  zh: {
    away: (since) => `服务器自 ${since} 起没有响应。当前显示的是之前的数据。正在重试…`,
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
      {isAway && <p class="banner tone-bad">{t.away(clockTime(awaySinceMs.value ?? Date.now()))}</p>}
      {!isAway && isBack.value && <p class="banner tone-ok">{t.back}</p>}
    </div>
  );
}
