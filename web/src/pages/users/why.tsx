// The parts of a figure: the accounts of a user, or the clients of one account. Both add up to the figure, also after the
// journal was trimmed. Below are the announces that the journal still has.
import { Entries, useEntries } from "./entries";
import { WhyAccount } from "./why-account";
import { WhyUser } from "./why-user";

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
