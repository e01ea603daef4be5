// Risk events as sentences; docs/accounting.md describes each kind.
import type { RiskEvent } from "../../api/types";
import * as format from "../../format";
import { texts } from "../../i18n";

/** In the order of the filter. */
export const RISK_KINDS = [
  "client_rate",
  "user_rate",
  "upload_without_leechers",
  "upload_after_stop",
  "upload_ahead_of_download",
  "left_without_download",
  "completed_without_download",
  "shared_address",
  "many_peer_ids",
] as const satisfies readonly RiskEvent["kind"][];

const kinds = texts({
  en: {
    client_rate: "Client above rate ceiling",
    user_rate: "User above rate ceiling",
    upload_without_leechers: "Upload without leechers",
    upload_after_stop: "Upload after stop",
    upload_ahead_of_download: "Upload ahead of download",
    left_without_download: "Progress without download",
    completed_without_download: "Completed without download",
    shared_address: "Shared address",
    many_peer_ids: "Many peer ids",
  },
  zh: {
    client_rate: "客户端速率过高",
    user_rate: "用户速率过高",
    upload_without_leechers: "没有下载者却有上传",
    upload_after_stop: "停止后仍有上传",
    upload_ahead_of_download: "上传多于下载",
    left_without_download: "未下载却有进度",
    completed_without_download: "未下载却已完成",
    shared_address: "共用地址",
    many_peer_ids: "peer id 过多",
  },
});

interface Figures {
  up: string;
  upCredited: string;
  down: string;
  downCredited: string;
  within: string;
  ceiling: string;
  count: number;
}

const sentences = texts({
  en: {
    client_rate: (f: Figures) => `A client claimed ${f.up} up and ${f.down} down within ${f.within}, more than ${f.ceiling} allows. Credited: ${f.upCredited} up, ${f.downCredited} down.`,
    user_rate: (f: Figures) => `All clients together claimed ${f.up} up and ${f.down} down within ${f.within}, more than ${f.ceiling} allows. Credited: ${f.upCredited} up, ${f.downCredited} down.`,
    upload_without_leechers: (f: Figures) => `Claimed ${f.up} of upload within ${f.within}, while no other user leeched the torrent. Credited: ${f.upCredited}.`,
    upload_after_stop: (f: Figures) => `Claimed ${f.up} of upload after it had stopped. None of it is credited.`,
    upload_ahead_of_download: (f: Figures) => `On this torrent ${f.upCredited} of upload is credited, but only ${f.downCredited} of download. This user claimed the most recently: ${f.up}.`,
    left_without_download: (f: Figures) => `The amount left fell by ${f.down} within ${f.within}, but only ${f.downCredited} was downloaded.`,
    completed_without_download: () => "Completed the torrent without downloading it.",
    shared_address: (f: Figures) => `At least ${format.counted(f.count, "user")} announced from this address within an hour.`,
    many_peer_ids: (f: Figures) => `Used ${format.counted(f.count, "peer id")} on this torrent within an hour.`,
  },
  zh: {
    client_rate: (f) => `一个客户端在 ${f.within} 内声称上传 ${f.up}、下载 ${f.down}，超出上限 ${f.ceiling}。实际计入：上传 ${f.upCredited}，下载 ${f.downCredited}。`,
    user_rate: (f) => `该用户的所有客户端在 ${f.within} 内共声称上传 ${f.up}、下载 ${f.down}，超出上限 ${f.ceiling}。实际计入：上传 ${f.upCredited}，下载 ${f.downCredited}。`,
    upload_without_leechers: (f) => `在 ${f.within} 内声称上传 ${f.up}，但期间没有其他用户下载该种子。实际计入：${f.upCredited}。`,
    upload_after_stop: (f) => `停止之后又声称上传 ${f.up}，均不计入。`,
    upload_ahead_of_download: (f) => `该种子已计入上传 ${f.upCredited}，但只计入下载 ${f.downCredited}。该用户最近声称的上传最多：${f.up}。`,
    left_without_download: (f) => `剩余量在 ${f.within} 内减少了 ${f.down}，但只下载了 ${f.downCredited}。`,
    completed_without_download: () => "未下载该种子却报告完成。",
    shared_address: (f) => `一小时内至少有 ${format.count(f.count)} 个用户从该地址汇报。`,
    many_peer_ids: (f) => `一小时内在该种子上使用了 ${format.count(f.count)} 个 peer id。`,
  },
});

/** Unknown kinds are shown unchanged. */
export function riskKind(kind: string): string {
  return kind in kinds ? kinds[kind as RiskEvent["kind"]] : kind;
}

/** Empty for unknown kinds. */
export function riskSentence(risk: RiskEvent): string {
  if (!(risk.kind in kinds)) return "";
  return sentences[risk.kind]({
    up: format.bytes(risk.uploaded_claimed),
    upCredited: format.bytes(risk.uploaded_credited),
    down: format.bytes(risk.downloaded_claimed),
    downCredited: format.bytes(risk.downloaded_credited),
    within: format.duration(risk.elapsed_s),
    ceiling: format.byteRate(format.number(risk.ceiling_bytes_per_s)),
    count: risk.count ?? 0,
  });
}
