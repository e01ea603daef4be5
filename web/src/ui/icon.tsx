// A few line drawings, 16 by 16.

const PATHS = {
  brand: "M2 3.5h.01M2 8h.01M2 12.5h.01M6 3.5h8M6 8h8M6 12.5h5",
  menu: "M2 4h12M2 8h12M2 12h12",
  overview: "M2 9.5l3-4 3 3 2.5-5L14 9M2 13.5h12",
  swarms: "M8 8m-1.6 0a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0-3.2 0M6.8 7 3.5 4M9.3 7l3-3M8 9.6V14M2.5 3.2h.01M13.3 3.2h.01",
  users: "M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.500 1.500 4.500 4M11 2.800a2.500 2.500 0 0 1 0 4.500M12.500 9.800c1.300.600 2 1.900 2 3.700",
  presence: "M8 8h.01M5.200 10.800a4 4 0 0 1 0-5.600M10.800 5.200a4 4 0 0 1 0 5.600M3 13a7 7 0 0 1 0-10M13 3a7 7 0 0 1 0 10",
  pipeline: "M1.500 4h5l3 8h5M1.500 12h5M9.500 4h5M12.500 2l2 2-2 2",
  access: "M10.500 9a3.500 3.500 0 1 0-3.300-2.300L2 12v2h2.500v-1.500H6V11l1.300-1.300c.9.300 2-.7 3.200-.7zM11 5h.01",
  audit: "M3.500 1.500h7l2 2v11h-9zM6 6h4M6 8.500h4M6 11h2.500",
} as const;

/** The drawings there are. */
export type IconName = keyof typeof PATHS;

/** A drawing. It says nothing to a screen reader: there is a word beside it. */
export function Icon(props: { name: IconName; size?: number }) {
  const size = props.size ?? 16;
  return (
    <svg class="icon" viewBox="0 0 16 16" width={size} height={size} aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round">
      <path d={PATHS[props.name]} />
    </svg>
  );
}
