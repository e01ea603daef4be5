// A banner above the page while the server is unreachable, and for a moment when it answers again.
import { useSignal, useSignalEffect } from "@preact/signals";
import { clockTime, duration } from "./format";
import { texts } from "./i18n";
import { connection, dataAgeS, reconnects, updatedAtMs } from "./live";

const t = texts({
  en: {
    unreachable: (since: string) => `The server is unreachable. The figures are from ${since}`,
    age: (age: string) => `, ${age} ago. Retrying…`,
    reconnected: "The server is reachable again.",
  },
  zh: {
    unreachable: (since) => `无法连接服务器。当前显示的是 ${since} 的数据`,
    age: (age) => `，${age}之前。正在重试…`,
    reconnected: "服务器已恢复。",
  },
});

const RECONNECTED_SHOWN_MS = 5000;

export function Banner() {
  const isReconnected = useSignal(false);
  useSignalEffect(() => {
    if (reconnects.value === 0) return;
    isReconnected.value = true;
    const timer = setTimeout(() => {
      isReconnected.value = false;
    }, RECONNECTED_SHOWN_MS);
    return () => clearTimeout(timer);
  });
  const isUnreachable = connection.value === "unreachable";
  return (
    <div role="status" aria-live="polite">
      {isUnreachable && (
        <p class="banner tone-bad">
          {t.unreachable(clockTime(updatedAtMs.value))}
          {/* It changes every second: hidden from screen readers. */}
          <span aria-hidden="true">{t.age(duration(dataAgeS()))}</span>
        </p>
      )}
      {!isUnreachable && isReconnected.value && <p class="banner tone-ok">{t.reconnected}</p>}
    </div>
  );
}
