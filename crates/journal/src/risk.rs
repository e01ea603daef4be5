//! Risk events as entries of their lane.

use domain::RiskEvent;

use crate::fields::Fields;

/// The fields of a risk event: who, what was claimed, what was credited, and by which ceiling.
pub fn fields_of(risk: &RiskEvent) -> Fields {
    let mut fields = Fields::with_room();
    fields.push("kind", "rate");
    fields.push_text("ts", risk.at);
    fields.push_text("user", risk.user);
    if let Some(torrent) = risk.torrent {
        fields.push_text("torrent", torrent);
    }
    fields.push_text("infohash", risk.info_hash);
    fields.push_text("peer_id", risk.peer_id);
    fields.push_text("ip", risk.ip);
    fields.push_text("dt", risk.elapsed.0);
    fields.push_text("du_claimed", risk.uploaded_claimed);
    fields.push_text("dd_claimed", risk.downloaded_claimed);
    fields.push_text("du_credited", risk.uploaded_credited);
    fields.push_text("dd_credited", risk.downloaded_credited);
    fields.push_text("ceiling_bytes_per_s", risk.ceiling.bytes_per_s);
    fields.push_text("unreported", risk.unreported);
    fields
}
