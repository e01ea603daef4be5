// Sanitises text written by users and peer ids for display.

// Control characters (C0, C1), bidirectional controls and invisible characters. Joiners stay: emoji and several scripts
// need them.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Makes such characters visible: `a<U+202E>b`. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (sign) => `<U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`);
}

/** At most `most` characters, with an ellipsis. Does not split an emoji. */
export function clipped(text: string, most: number): string {
  if (text.length <= most) return text;
  const whole = Array.from(text.slice(0, most * 2 + 2));
  return whole.length <= most ? text : `${whole.slice(0, most).join("")}…`;
}

// Azureus-style peer ids: -qB4650-…
const CLIENTS: Record<string, string> = {
  AG: "Ares", AZ: "Vuze", BC: "BitComet", BI: "BiglyBT", BT: "BitTorrent", DE: "Deluge", FD: "Free Download Manager", JT: "JavaTorrent",
  KT: "KTorrent", LT: "libtorrent", LW: "LimeWire", PI: "PicoTorrent", RT: "rTorrent", lt: "rTorrent", SD: "Thunder",
  TB: "Torch", TL: "Tribler", TR: "Transmission", TX: "Tixati", UM: "µTorrent Mac", UT: "µTorrent", UW: "µTorrent Web", WT: "BitTorrent Web",
  WW: "WebTorrent", WD: "WebTorrent Desktop", XL: "Xunlei", XF: "Xfplay", qB: "qBittorrent", A2: "aria2", FL: "Flud", FW: "FrostWire",
};

/** Client program by peer id (hexadecimal or text) or prefix: `qBittorrent 4.6.5`. */
export function clientName(peerId: string): string {
  const text = /^(?:[0-9a-f]{2}){4,20}$/i.test(peerId) ? fromHex(peerId) : peerId;
  const azureus = /^-([A-Za-z0-9]{2})([0-9A-Za-z]{0,4})/.exec(text);
  if (azureus) {
    const name = CLIENTS[azureus[1] ?? ""];
    if (name) return [name, version(azureus[1] ?? "", azureus[2] ?? "")].filter(Boolean).join(" ");
    return `-${azureus[1]}${azureus[2]}`;
  }
  const aria = /^A2-(\d+)-(\d+)-(\d+)/.exec(text);
  if (aria) return `aria2 ${aria[1]}.${aria[2]}.${aria[3]}`;
  const mainline = /^M(\d+)-(\d+)-(\d+)/.exec(text);
  if (mainline) return `BitTorrent ${mainline[1]}.${mainline[2]}.${mainline[3]}`;
  return clipped(visible(text), 12);
}

function version(code: string, digits: string): string {
  if (digits.length < 4) return digits.split("").join(".");
  // Transmission 4.0.6 writes 4060, and Transmission 2.94 wrote 2940.
  if (code === "TR" && /^[0-3]/.test(digits)) return `${digits[0]}.${digits.slice(1, 3)}`;
  const parts = digits.split("").map((digit) => parseInt(digit, 36));
  while (parts.length > 2 && parts[parts.length - 1] === 0) parts.pop();
  return parts.join(".");
}

function fromHex(hex: string): string {
  let text = "";
  for (let index = 0; index < hex.length; index += 2) text += String.fromCharCode(parseInt(hex.slice(index, index + 2), 16));
  return text;
}
