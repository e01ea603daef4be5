// Shared components of the pages.
export { Badge, StatusDot, type Tone } from "./badge";
export { Button, CopyButton, type ButtonTone } from "./button";
export { Chart, type Series } from "./chart";
export type { Unit } from "./chart-ticks";
export { confirm, Confirm, Dialog, DialogButtons, type Question } from "./dialog";
export { Check, Field, SearchField, Select, TextField } from "./field";
export { Card, Empty, Facts, Failure, Loading, Page, Stat, Stats } from "./page";
export { MoreButton, Table, type Column, type Sorting } from "./table";
export { Tabs, type Tab } from "./tabs";
export { statusName, words } from "./texts";
export { attempt, toast, toastProblem, Toasts } from "./toast";
export { Bytes, ClientName, Count, Duration, Infohash, Name, Rate, Time } from "./value";
export { VirtualList } from "./virtual";
