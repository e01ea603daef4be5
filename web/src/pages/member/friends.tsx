// The member's friends, online ones first.
import { useState } from "preact/hooks";
import { isOnline, type User } from "rollcall-presence";
import * as format from "../../format";
import { Button, Card, Empty, Name, StatusDot, Time } from "../../ui";
import { friends } from "./presence";
import { t } from "./texts";

const SHOWN_AT_FIRST = 12;

export function FriendsCard() {
  const [isAll, setAll] = useState(false);
  const all = friends.value;
  const online = all.filter(isOnline).length;
  const shown = isAll ? all : all.slice(0, SHOWN_AT_FIRST);
  const count = <span class="dim" aria-live="polite">{t.friendsOnline(format.countExact(online), format.countExact(all.length))}</span>;
  return (
    <Card flush title={t.friends} actions={all.length > 0 && count}>
      {all.length === 0 ? (
        <Empty title={t.noFriends}>{t.noFriendsHint}</Empty>
      ) : (
        <ul class="lines">
          {shown.map((friend) => (
            <Friend key={friend.id} friend={friend} />
          ))}
        </ul>
      )}
      {shown.length < all.length && (
        <div class="more">
          <Button onClick={() => setAll(true)}>{t.showAllFriends(format.countExact(all.length))}</Button>
        </div>
      )}
    </Card>
  );
}

function Friend(props: { friend: User }) {
  const { friend } = props;
  const counts = [friend.seeding ? t.seeds(format.countExact(friend.seeding)) : "", friend.leeching ? t.leeches(format.countExact(friend.leeching)) : ""].filter(Boolean);
  return (
    <li class="line">
      <StatusDot status={friend.status} bare />
      <span class="line-main">
        <span>{t.user(friend.id)}</span>
        {friend.text && (
          <span class="dim line-more">
            <Name text={friend.text} />
          </span>
        )}
      </span>
      <span class="dim line-end">
        {isOnline(friend) ? counts.join(" · ") : friend.last_seen ? <Time at={friend.last_seen} /> : null}
      </span>
    </li>
  );
}
