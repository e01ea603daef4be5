import type { VNode } from "preact";
import { describe, expect, it } from "vitest";
import { clientName, clipped, visible } from "../src/names";
import { Name } from "../src/ui/value";

function shown(text: string): { title: string; children: unknown } {
  return (Name({ text }) as VNode<{ title: string; children: unknown }>).props;
}

describe("text of users", () => {
  it("is rendered as text", () => {
    const hostile = `<img src=x onerror="alert(1)"><script>alert(1)</script>&amp;`;
    expect(shown(hostile).children).toBe(hostile);
    expect(shown(hostile).title).toBe(hostile);
  });

  it("shows bidirectional and invisible characters", () => {
    expect(visible("abc\u202Egpj.exe")).toBe("abc<U+202E>gpj.exe");
    expect(visible("a\u2066b\u2069\u200Fc")).toBe("a<U+2066>b<U+2069><U+200F>c");
    expect(visible("a\u0000b\nc\u001bd\u007f")).toBe("a<U+0000>b<U+000A>c<U+001B>d<U+007F>");
    expect(visible("in\u200Bvisible\uFEFF")).toBe("in<U+200B>visible<U+FEFF>");
    expect(visible("\u{E0041}")).toBe("<U+E0041>");
  });

  it("keeps scripts and emoji", () => {
    for (const text of ["你好，世界", "שלום", "नमस्ते", "👩‍👩‍👧‍👦 family", "می‌خواهم"]) expect(visible(text)).toBe(text);
  });

  it("is clipped, as is its title", () => {
    const props = shown("x".repeat(10_000));
    expect(props.children).toBe(`${"x".repeat(160)}…`);
    expect(props.title.length).toBeLessThanOrEqual(2001);
  });

  it("stays short if every character is made visible", () => {
    const props = shown("\u202E".repeat(10_000));
    expect(String(props.children).length).toBe(161);
  });

  it("does not split an emoji", () => {
    expect(clipped("😀".repeat(10), 3)).toBe("😀😀😀…");
    expect(clipped("😀😀", 2)).toBe("😀😀");
  });
});

describe("a client", () => {
  it("is identified by peer id in hexadecimal or text, or by a prefix", () => {
    expect(clientName("-qB4650-abcdefghijkl")).toBe("qBittorrent 4.6.5");
    expect(clientName("2d5452343036302d6162636465666768696a6b6c")).toBe("Transmission 4.0.6");
    expect(clientName("-TR2940-")).toBe("Transmission 2.94");
    expect(clientName("-DE")).toBe("Deluge");
    expect(clientName("A2-1-36-0-abcdefghij")).toBe("aria2 1.36.0");
    expect(clientName("M7-10-5--abc")).toBe("BitTorrent 7.10.5");
  });

  it("is sanitised if unknown", () => {
    expect(clientName("-ZZ1234-")).toBe("-ZZ1234");
    expect(clientName("00".repeat(20))).toBe(clipped(visible("\u0000".repeat(20)), 12));
  });
});
