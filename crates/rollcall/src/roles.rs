//! What one process does: all of it, or a part, with other processes for the rest.

use std::str::FromStr;

use clap::ValueEnum;

/// A part of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Hears announces and writes them to the journal.
    Tracker,
    /// Keeps the accounts.
    Ledger,
    /// Keeps the lists of who seeds and who leeches.
    Activity,
    /// Keeps the tracker's layout in Redis, for programs that read it. Without Redis it has nothing to do.
    Mirror,
    /// Knows which people are here. They connect through the site's port, so it needs the role "site" as well.
    Gateway,
    /// Serves the API, the verify endpoint, metrics and health.
    Site,
}

/// The parts that a process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles(Vec<Role>);

impl Role {
    /// As it is written on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Roles {
    /// Each of them once.
    pub fn iter(&self) -> impl Iterator<Item = Role> {
        Role::value_variants().iter().copied().filter(|role| self.include(*role))
    }

    /// Whether this is one of them.
    pub fn include(&self, role: Role) -> bool {
        self.0.contains(&role)
    }
}

impl Default for Roles {
    /// Everything.
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
    fn roles_are_named_with_commas_between_them() {
        let roles: Roles = "ledger, activity".parse().unwrap();
        assert!(
            roles.include(Role::Ledger) && roles.include(Role::Activity) && !roles.include(Role::Tracker)
        );
        assert!(Roles::default().include(Role::Tracker));
        let error = "ledgre".parse::<Roles>().unwrap_err();
        assert_eq!(
            error,
            "there is no role \"ledgre\"; the roles are tracker, ledger, activity, mirror, gateway, site"
        );
    }
}
