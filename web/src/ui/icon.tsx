// Icons, 16 by 16.

const PATHS = {
  brand: "M2 3.5h.01M2 8h.01M2 12.5h.01M6 3.5h8M6 8h8M6 12.5h5",
  menu: "M2 4h12M2 8h12M2 12h12",
  overview: "M2 9.5l3-4 3 3 2.5-5L14 9M2 13.5h12",
  swarms: "M8 5.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM3.5 14.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM12.5 14.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 5.5l-2.5 5M9 5.5l2.5 5M5.5 12.5h5",
  users: "M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M11 2.8a2.5 2.5 0 0 1 0 4.5M12.5 9.8c1.3.6 2 1.9 2 3.7",
  staff: "M8 1.5l5.5 2v4c0 3.4-2.3 5.8-5.5 7-3.2-1.2-5.5-3.6-5.5-7v-4zM5.5 8l1.8 1.8L10.7 6.2",
  presence: "M8 8h.01M5.2 10.8a4 4 0 0 1 0-5.6M10.8 5.2a4 4 0 0 1 0 5.6M3 13a7 7 0 0 1 0-10M13 3a7 7 0 0 1 0 10",
  pipeline: "M1.5 4h5l3 8h5M1.5 12h5M9.5 4h5M12.5 2l2 2-2 2",
  access: "M10.5 9a3.5 3.5 0 1 0-3.3-2.3L2 12v2h2.5v-1.5H6V11l1.3-1.3c.9.3 2-.7 3.2-.7zM11 5h.01",
  audit: "M3.5 1.5h7l2 2v11h-9zM6 6h4M6 8.5h4M6 11h2.5",
} as const;

export type IconName = keyof typeof PATHS;

/** Hidden from screen readers: a word stands beside it. */
export function Icon(props: { name: IconName; size?: number }) {
  const size = props.size ?? 16;
  return (
    <svg class="icon" viewBox="0 0 16 16" width={size} height={size} aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round">
      <path d={PATHS[props.name]} />
    </svg>
  );
}
