// Why a figure is what it is. Of one torrent: what each client brought, by its own counters. Of a user: their accounts. Both
// come to the figure, to the byte, however much the journal has trimmed; the announces below are the detail.
import { Entries, useEntries } from "./entries";
import { WhyAccount } from "./why-account";
import { WhyUser } from "./why-user";

/** Why the figures of a user are what they are, on one torrent or in all. */
export function Why(props: { user: number; torrent: number | null }) {
  const { user, torrent } = props;
  const found = useEntries(user, torrent);
  const refresh = found.list.refresh;
  return (
    <>
      {torrent === null ? <WhyUser user={user} refreshed={refresh} /> : <WhyAccount user={user} torrent={torrent} entries={found.list.items} refreshed={refresh} />}
      <Entries found={found} withTorrent={torrent === null} />
    </>
  );
}
