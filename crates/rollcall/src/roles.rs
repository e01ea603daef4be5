//! What a process does: everything, or a part, with other processes for the rest.

use std::str::FromStr;

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Receives announces and writes them to the journal
    Tracker,
    /// Keeps the accounts
    Ledger,
    /// Keeps the activity lists: what each user seeds and leeches
    Activity,
    /// Keeps the mirror: the keys `t:*` in Redis, for other programs. Does nothing without Redis
    Mirror,
    /// Reads and writes the tables of an existing site. Does nothing without sites.profile
    Sites,
    /// Serves WebSocket connections and presence. Needs the role "site", whose port it uses
    Gateway,
    /// Serves the API, the dashboard, passkey verification, metrics and health
    Site,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles(Vec<Role>);

impl Role {
    /// As on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Roles {
    pub fn iter(&self) -> impl Iterator<Item = Role> {
        Role::value_variants().iter().copied().filter(|role| self.include(*role))
    }

    pub fn include(&self, role: Role) -> bool {
        self.0.contains(&role)
    }
}

impl Default for Roles {
    /// All roles.
    fn default() -> Self {
        Roles(Role::value_variants().to_vec())
    }
}

impl FromStr for Roles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || {
            let names = Role::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            names.map(|name| name.get_name().to_owned()).collect::<Vec<_>>().join(", ")
        };
        let role = |name: &str| {
            Role::from_str(name.trim(), false)
                .map_err(|_| format!("there is no role \"{name}\"; the roles are {}", known()))
        };
        let roles: Vec<Role> = text.split(',').map(role).collect::<Result<_, _>>()?;
        Ok(Roles(roles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_separated_by_commas() {
        let roles: Roles = "ledger, activity".parse().unwrap();
        assert!(
            roles.include(Role::Ledger) && roles.include(Role::Activity) && !roles.include(Role::Tracker)
        );
        assert!(Roles::default().include(Role::Tracker));
        let error = "ledgre".parse::<Roles>().unwrap_err();
        assert_eq!(
            error,
            "there is no role \"ledgre\"; the roles are tracker, ledger, activity, mirror, sites, gateway, site"
        );
    }
}
