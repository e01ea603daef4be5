// Made from openapi.json by `npm run api`. Do not edit.

export interface paths {
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who changed what */
        get: {
            parameters: {
                query?: {
                    /** @description How many, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: number;
                    /** @description Only this action, such as `user.add`; with a dot at its end, all that begin with it. */
                    action?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, newest first; it may be short and still not be the last */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditRecordPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether anybody touched the trail
         * @description Reads all of it, one time for everybody who asks at once.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The verdict */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditVerification"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Which programs may announce
         * @description Once one is allowed, all others are refused; of several prefixes that fit, the longest decides.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description All of them */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ClientRulePage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/clients/{prefix}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Allows or forbids programs */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The first characters of their peer ids, such as `-TR3` */
                    prefix: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SetClientRule"];
                };
            };
            responses: {
                /** @description What holds now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ClientRule"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        /** Takes a prefix off the list */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The first characters of their peer ids, such as `-TR3` */
                    prefix: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Done */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/friends/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes many pairs of users friends
         * @description All of them, or none. Sending the same again does no harm.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ImportFriends"];
                };
            };
            responses: {
                /** @description What became of them */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ImportFriendsReply"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/journal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far each view is */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The journal and its readers */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JournalStatus"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/journal/views/{view}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Pauses a view, or lets it go on; answers once no process applies another entry */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `ledger` or `activity` */
                    view: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateView"];
                };
            };
            responses: {
                /** @description What it does now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ViewStatus"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/api/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who may use the API */
        get: {
            parameters: {
                query?: {
                    /** @description How many, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                    /** @description Also those that were revoked. */
                    revoked?: boolean;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, newest first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["KeyPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Makes a key
         * @description Its text is in the answer, and nowhere else from then on.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateKey"];
                };
            };
            responses: {
                /** @description The key, this once */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CreatedKey"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revokes a key
         * @description It stops working within a second, and with it every session that was begun with it. The key that asks is revoked only
         *     with `force=true`: so there is always one with `admin` left, unless that is meant.
         */
        delete: {
            parameters: {
                query?: {
                    /** @description Revokes also the key that asks. */
                    force?: boolean;
                };
                header?: never;
                path: {
                    /** @description The key's id */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It works no longer */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description It is the key that asks */
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/letters/{lane}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Dead letters, or failed entries */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description `dlq` (tried again) or `failed` (given up) */
                    lane: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, oldest first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeadLetterPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/letters/{lane}/drop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Throws entries away */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `dlq` (tried again) or `failed` (given up) */
                    lane: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeadLetterSelection"];
                };
            };
            responses: {
                /** @description How many */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeadLetterCount"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/letters/{lane}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tries entries again, now */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `dlq` (tried again) or `failed` (given up) */
                    lane: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeadLetterSelection"];
                };
            };
            responses: {
                /** @description How many */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeadLetterCount"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/letters/{lane}/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One dead letter, or failed entry */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `dlq` (tried again) or `failed` (given up) */
                    lane: string;
                    /** @description Its id */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The entry */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeadLetter"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What a person may know of themselves
         * @description With a token of the person, as for a connection; not with an API key.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The person, also one who never announced anything */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Me"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/multipliers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All multipliers, also those whose time is over or has not come */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description All of them, by number */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MultiplierPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /** Lets bytes count more or less for a while */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateMultiplier"];
                };
            };
            responses: {
                /** @description The multiplier */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Multiplier"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/multipliers/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a multiplier; what it has added stays, and so does its row, with its end */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Its number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Done */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Everything at a glance
         * @description Put together once a second, by this process; rates are over the last five seconds. Who is online is counted over all
         *     gateways, everything else is of this process. How many hide is told to keys for `admin` only.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description As of the last second */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Overview"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/overview/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The last hour
         * @description A point every ten seconds, since this process began.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The oldest first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OverviewHistory"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Which ports are banned
         * @description A client that listens on one of them is refused, with the advice to choose another.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description All of them, by their numbers */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BannedPortsPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ports/{first}/{last}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Bans ports; peers that listen there leave their swarms */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The first port */
                    first: number;
                    /** @description The last port */
                    last: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["BanPorts"];
                };
            };
            responses: {
                /** @description What holds now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BannedPorts"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        /** Allows ports again; a banned range that reaches further is cut */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The first port */
                    first: number;
                    /** @description The last port */
                    last: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Done */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/presence/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How many are here, over all gateways
         * @description How many hide, and figures that include them, are for keys with `admin` only.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description By status and platform */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PresenceCount"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/presence/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who came, went and changed lately
         * @description The last 500 of this gateway, since it began. To keys without `admin`, who hides has left, as it looks to everybody, and
         *     how somebody came or went is not told, since it would tell who hides.
         */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The newest first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PresenceOccurrences"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/presence/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A device that holds no connection is here
         * @description With a token of the person, as for a connection; not with an API key.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Heartbeat"];
                };
            };
            responses: {
                /** @description It was heard */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HeartbeatReply"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/presence/online": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who is here now
         * @description By their numbers. With several gateways these are the people of this one, while `/api/v1/presence/count` counts those
         *     of all. Who hides is shown to keys for `admin` only.
         */
        get: {
            parameters: {
                query?: {
                    /**
                     * @description Only people of this status: online, away, busy, invisible (with `admin` only) or pending (here before a restart).
                     *     Everybody who is here if left out.
                     */
                    status?: "online" | "away" | "busy" | "invisible" | "pending";
                    /** @description Only people who have such a device here. */
                    platform?: components["schemas"]["Platform"];
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next_cursor` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of them */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OnlinePersonPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/presence/query": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What others see of many people */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["QueryPresence"];
                };
            };
            responses: {
                /** @description In the order asked */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PresencePage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/presence/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What others see of a person */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The person; offline if nobody ever heard of them */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Presence"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/risks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The risk events of all users
         * @description Newest first. With `kind`, each request looks at a bounded number of risk events, so a page may be short, or empty,
         *     and still not be the last.
         */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                    /** @description Only those of this kind. */
                    kind?: "client_rate" | "user_rate" | "upload_without_leechers" | "upload_after_stop" | "upload_ahead_of_download" | "left_without_download" | "completed_without_download" | "shared_address" | "many_peer_ids";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, newest first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RiskEventPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/staff/queue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What waits for the site's staff, the newest first
         * @description Risk events, hit-and-runs, torrents that await approval, dead letters and failed entries. Hit-and-runs are looked for
         *     among all accounts every few minutes on a large site, more often on a small one.
         */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                    /** @description Only items of this kind. */
                    kind?: "risk" | "hit_and_run" | "approval" | "dead_letter" | "failed_entry";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, the newest first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["QueuePage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The whole at a glance */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Figures of this process */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Stats"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/swarms": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Torrents by how many are on them, by size, or by age
         * @description Pages join without gaps or repeats while swarms change, for at least a while: figures are those of the moment at which
         *     the first page was asked for.
         */
        get: {
            parameters: {
                query?: {
                    /** @description By what. The torrents' numbers decide ties. */
                    sort?: "seeders" | "leechers" | "snatches" | "size" | "added";
                    /** @description Whether the largest (the newest) comes first, or last. */
                    order?: "desc" | "asc";
                    /** @description Only torrents with this in their name, in upper or lower case; or whose infohash begins with these four or more hexadecimal digits; or with this number. */
                    search?: string;
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of torrents */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SwarmPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/torrents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All torrents */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of torrents, by their numbers */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TorrentPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /** Lets a torrent be announced */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateTorrent"];
                };
            };
            responses: {
                /** @description The torrent */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Torrent"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/torrents/file": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Lets the torrent of a `.torrent` file be announced
         * @description Name, size and infohashes are read from the file, as `rollcall torrent add FILE` does. It is 32 MiB long at the most.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Whether it is open to all at once; otherwise it awaits approval. */
                    approved?: boolean;
                    /**
                     * @description Whether a torrent without the private flag is taken: clients find peers of such a torrent past this tracker,
                     *     uncounted.
                     */
                    allow_public?: boolean;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            /** @description The file as it is */
            requestBody: {
                content: {
                    "application/octet-stream": number[];
                };
            };
            responses: {
                /** @description The torrent */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Torrent"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/torrents/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A torrent, its swarm, and what was moved of it */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The torrent's number, or its infohash */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The torrent */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TorrentDetails"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Removes a torrent; its accounts stay */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The torrent's number, or its infohash */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Done */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /** Closes a torrent, approves it, or limits how many leech it at once */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The torrent's number, or its infohash */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateTorrent"];
                };
            };
            responses: {
                /** @description The torrent */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Torrent"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/api/v1/torrents/{id}/accounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The accounts of everybody who ever announced a torrent
         * @description Those heard of last come first, and every announce moves an account to the front. So while pages are read, an account
         *     that is heard of meanwhile may be missing from those that follow: whoever needs all of them asks for the first page
         *     again, and again until nothing in it is new.
         */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The torrent's number, or its infohash */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of accounts, those heard of last first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TorrentAccountPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/torrents/{id}/peers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who is on a torrent right now */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The torrent's number, or its infohash */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of peers, by user; with addresses for keys with `admin` */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PeerPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Users: all, those that a search finds, those in a state
         * @description By number unless another order is asked for. Other orders and states follow what happens within a few seconds; the
         *     figures on a page are those of the moment.
         */
        get: {
            parameters: {
                query?: {
                    /** @description By what: amounts as credited. Users without such a value come last; numbers decide ties. */
                    sort?: "id" | "uploaded" | "downloaded" | "ratio" | "last_announce" | "seeding" | "leeching";
                    /** @description Smallest or largest first. By number the smallest, else the largest, if left out. */
                    order?: "asc" | "desc";
                    /** @description Only users in this state. Who is online is known by a process with the role "gateway", of its own connections. */
                    state?: "enabled" | "disabled" | "seeding" | "leeching" | "online" | "hit_and_run" | "never_announced";
                    /** @description Only users with this in their name, in upper or lower case, with this number or, for keys with `admin`, with this whole passkey. */
                    search?: string;
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of users */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UserPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /** Lets a user announce */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateUser"];
                };
            };
            responses: {
                /** @description The user, with their passkey */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["User"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/lookup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Whose passkeys these are */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["LookupPasskeys"];
                };
            };
            responses: {
                /** @description In the order asked */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PasskeyHolderPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A user, and what they moved */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The user */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UserDetails"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Removes a user; their accounts stay */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Done */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /** Disables or enables a user; sets the display name and how much they leech at once */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateUser"];
                };
            };
            responses: {
                /** @description The user */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["User"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/api/v1/users/{id}/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A person's devices, with their last heartbeats */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Hidden or not; none if they are not here */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UserSessions"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/disconnect": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ends a person's sessions
         * @description All of them, or those of one device, at every gateway. Unless `reconnect` is true, their clients do not come back by themselves; a
         *     token that is still good lets them in again all the same.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DisconnectUser"];
                };
            };
            responses: {
                /** @description How many there were */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DisconnectReply"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/entries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The entries that made a user's figures
         * @description Newest first, as far back as the journal goes. Each request looks at a bounded number of entries, so a page may be
         *     short, or empty, and still not be the last: go on while there is a `next`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                    /** @description Only those on the torrent with this number. */
                    torrent?: number;
                };
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of entries; with addresses for keys with `admin` */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["EntryPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/friends": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The friends of a user
         * @description Also of one whom nobody knows: they have none.
         */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of friends, by their numbers */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FriendPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/friends/{other}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Makes two users friends
         * @description Who is a friend already stays one. Whoever is connected hears of it within a second.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The number of one user */
                    id: number;
                    /** @description The number of the other */
                    other: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description They are friends */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        /** Ends a friendship */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The number of one user */
                    id: number;
                    /** @description The number of the other */
                    other: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Done */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/hit-and-runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where a user owes seeding */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, by the torrents' numbers; it may be short, or empty, and still not be the last */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HitAndRunPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/leeching": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a user leeches right now */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Newest announce first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActiveTorrentPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/passkey": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives a user a new passkey; the old one stops working */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RotatePasskey"];
                };
            };
            responses: {
                /** @description The user, with the new passkey */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["User"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/presence/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** When a person came, went and changed */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Newest first, for as long as presence.history_days */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PresenceEventPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/privacy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who may see what of a user
         * @description For who has not chosen, what `presence.default_visibility` says.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description What holds */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Privacy"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /**
         * Chooses who may see what of a user
         * @description Replaces all that was chosen before. Whoever is connected hears of it within a second.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SetPrivacy"];
                };
            };
            responses: {
                /** @description What holds now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Privacy"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/risks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The risk events of a user
         * @description Newest first. Each request looks at a bounded number of risks, so a page may be short, or empty, and still not be the
         *     last.
         */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                    /** @description Only those of this kind. */
                    kind?: "client_rate" | "user_rate" | "upload_without_leechers" | "upload_after_stop" | "upload_ahead_of_download" | "left_without_download" | "completed_without_download" | "shared_address" | "many_peer_ids";
                };
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, newest first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RiskEventPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/seeding": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a user seeds right now */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Newest announce first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActiveTorrentPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/torrents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A user's account on each torrent */
        get: {
            parameters: {
                query?: {
                    /** @description How many items, at the most. */
                    limit?: number;
                    /** @description `next` of the page before; left out for the first page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of accounts, by the torrents' numbers */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AccountPage"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}/torrents/{torrent}/clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What made a user's account on a torrent: its clients
         * @description What each client brought, by its own counters. Whatever the journal has trimmed, the parts come to the account's bytes.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The user's number */
                    id: number;
                    /** @description The torrent's number */
                    torrent: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The account and its clients, those heard of last first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AccountClients"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/whitelist": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How long the whitelist is */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Its length */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistSize"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /**
         * Replaces the whitelist
         * @description The body has one passkey a line; empty lines and those that begin with `#` are left out. It is built aside while it
         *     comes in and takes the place of the old one at once, at its end: nobody ever sees a part of it. A line that is no
         *     passkey, a body that ends too soon: nothing changes.
         */
        put: {
            parameters: {
                query?: {
                    /** @description Whether an upload without a single passkey may empty the whitelist. */
                    allow_empty?: boolean;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            /** @description One passkey a line */
            requestBody?: {
                content: {
                    "text/plain": string | null;
                };
            };
            responses: {
                /** @description What replaced what */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistReplaced"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/whitelist/add": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Puts passkeys on the whitelist */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["WhitelistPasskeys"];
                };
            };
            responses: {
                /** @description How many are new */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistChanged"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/whitelist/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Which passkeys are on the whitelist */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["WhitelistPasskeys"];
                };
            };
            responses: {
                /** @description In the order asked */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistChecked"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/whitelist/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Takes passkeys off the whitelist
         * @description Every tracker knows within a second, and their peers leave the swarms.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["WhitelistPasskeys"];
                };
            };
            responses: {
                /** @description How many were there */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistChanged"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/whitelist/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Goes back to what the last refresh replaced */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description What replaced what */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistReplaced"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether the server lives
         * @description Asks nothing of anybody: a server that does not answer this should be restarted.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It does */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Liveness"];
                    };
                };
                /** @description Too many requests */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Figures for Prometheus
         * @description Takes a key for `read`, unless `site.metrics_open` is set.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description In the format that Prometheus reads */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
                /** @description No valid key */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/passkey/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether a passkey may announce
         * @description For trackers of other makes: they ask when their own copy of the whitelist does not know a passkey.
         */
        get: {
            parameters: {
                query: {
                    /** @description The passkey: 8 to 64 hexadecimal digits; upper case is taken as lower case. */
                    passkey: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The answer */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["VerifyReply"];
                    };
                };
                /** @description No passkey, or not one */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description No valid key */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description Something else is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether everything works that the server depends on
         * @description Each dependency with its state and since when; with a key for `read`, also what is wrong. Announces are answered
         *     from memory whatever this says.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Everything is well */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Readiness"];
                    };
                };
                /** @description Something is not */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Readiness"];
                    };
                };
                /** @description Too many requests */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who is signed in */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description They are */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OperatorSession"];
                    };
                };
                /** @description Nobody is */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Signs in
         * @description For the dashboard: exchanges a key with `read` or `admin` for a cookie. Programs send the key itself instead.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SignIn"];
                };
            };
            responses: {
                /** @description Signed in; the cookie is set */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OperatorSession"];
                    };
                };
                /** @description No valid key */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description Too many wrong keys from this address */
                429: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /** Signs out */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Signed out; the cookie is gone */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Nobody is signed in */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/session/feed-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A token for the operators' feed
         * @description With it the dashboard connects to `/connection/websocket` and hears what happens as it happens. A server without the
         *     role `gateway` has no feed: poll instead.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The token */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FeedToken"];
                    };
                };
                /** @description No feed here */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A user on a torrent. */
        Account: {
            /** @description The program that announced it last, such as `-TR3000-`. */
            client: string;
            /**
             * Format: int32
             * @description When it was first completed.
             */
            completed_at?: number | null;
            /** @description The amounts. */
            figures: components["schemas"]["Figures"];
            /** @description Its infohash; null if it was removed. */
            infohash?: string | null;
            /** @description Whether the user leeches it right now. */
            leeching: boolean;
            /** @description Bytes still wanted, by the latest announce; null if the client did not say. */
            left?: string | null;
            /** @description What people call it; null if it was removed. */
            name?: string | null;
            /** @description Whether the user seeds it right now. */
            seeding: boolean;
            /**
             * Format: int64
             * @description The torrent's number.
             */
            torrent: number;
        };
        /** @description What a client brought. */
        AccountClient: {
            /**
             * @description What it brought in all: its stretches with what was bridged, and the sums, without what was
             *     withheld.
             */
            brought: components["schemas"]["Transferred"];
            /** @description What entries brought that other producers wrote, without counters. */
            foreign: components["schemas"]["Transferred"];
            /**
             * @description Its number, as entries have it in `client_id`.
             * @example 0123456789abcdef
             */
            id: string;
            /**
             * Format: int32
             * @description When it was last heard of.
             */
            last_seen: number;
            /** @description What stretches brought that were put away, since a client had too many. */
            settled: components["schemas"]["Transferred"];
            /**
             * @description `seeding`, `leeching` or `gone`.
             * @example seeding
             */
            state: string;
            /** @description Its counters, the oldest first. */
            stretches: components["schemas"]["Stretch"][];
            /** @description What was not credited, because all clients of the user together claimed more than their rate limit allows. */
            withheld: components["schemas"]["Transferred"];
        };
        /** @description Why an account is what it is. What the clients brought and the rest are the account's bytes, exactly. */
        AccountClients: {
            account?: components["schemas"]["Account"] | null;
            /** @description Its clients, those heard of last first, up to 100. */
            clients: components["schemas"]["AccountClient"][];
            /** @description Whether these are all that are known. If not, the others are in the rest. */
            complete: boolean;
            /**
             * @description What is known only as a sum: clients that are not listed, or were not heard of for so long that they are no longer
             *     kept. What was credited under another ceiling than today's is in it, too, and may make it less than nothing.
             */
            rest: components["schemas"]["Transferred"];
        };
        /** @description A page of a list. */
        AccountPage: {
            /** @description What is on it. */
            items: {
                /** @description The program that announced it last, such as `-TR3000-`. */
                client: string;
                /**
                 * Format: int32
                 * @description When it was first completed.
                 */
                completed_at?: number | null;
                /** @description The amounts. */
                figures: components["schemas"]["Figures"];
                /** @description Its infohash; null if it was removed. */
                infohash?: string | null;
                /** @description Whether the user leeches it right now. */
                leeching: boolean;
                /** @description Bytes still wanted, by the latest announce; null if the client did not say. */
                left?: string | null;
                /** @description What people call it; null if it was removed. */
                name?: string | null;
                /** @description Whether the user seeds it right now. */
                seeding: boolean;
                /**
                 * Format: int64
                 * @description The torrent's number.
                 */
                torrent: number;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description A torrent that a user seeds or leeches right now. */
        ActiveTorrent: {
            /**
             * @description The torrent.
             * @example 0123456789abcdef0123456789abcdef01234567
             */
            infohash: string;
            /**
             * Format: int32
             * @description The last announce.
             */
            last_announce: number;
            /** @description What people call it; null likewise. */
            name?: string | null;
            /**
             * Format: int64
             * @description Its number; null if nobody knows it any more.
             */
            torrent?: number | null;
        };
        /** @description A page of what a user seeds or leeches, newest announce first. */
        ActiveTorrentPage: {
            /**
             * Format: int64
             * @description How many there are in all.
             */
            count: number;
            /** @description What is on this page. */
            items: components["schemas"]["ActiveTorrent"][];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description Something that is wrong. */
        Alert: {
            /** @description Dependencies and views that fail because of it, by name. They have no alerts of their own. */
            affected: string[];
            /**
             * @description What it is, for programs.
             * @example view_paused
             */
            code: string;
            /** @description What is wrong and what to do, in words. */
            detail: string;
            /** @description How bad it is. */
            severity: components["schemas"]["Severity"];
            /**
             * Format: int32
             * @description Since when, in seconds since 1970.
             */
            since: number;
            /**
             * @description What it is about: a view, a dependency; null where there is only one of its kind.
             * @example ledger
             */
            subject?: string | null;
        };
        /**
         * @description Whether somebody looks at the app.
         * @enum {string}
         */
        AppState: "foreground" | "background" | "inactive";
        /**
         * @description To whom something is shown.
         * @enum {string}
         */
        Audience: "everyone" | "friends" | "nobody";
        /** @description A record of the audit trail, as its file has it. */
        AuditRecord: {
            /**
             * @description What was done.
             * @example passkey.add
             */
            action: string;
            /**
             * @description Who did it.
             * @example key:1a2b3c4d
             */
            actorId: string;
            /**
             * @description When.
             * @example 2026-11-15T12:00:00.000Z
             */
            at: string;
            /** @description What else is worth knowing. */
            details: Record<string, never>;
            /** @description The hash of this record. */
            hash: string;
            /** @description The hash of the record before. */
            prev: string;
            /**
             * @description How it ended.
             * @example ok
             */
            result: string;
            /**
             * Format: int64
             * @description Its number.
             */
            seq: number;
            /** @description Which of them; a passkey by its first digits and a hash. */
            subjectId: string;
            /** @description What kind of thing it is about. */
            subjectType: string;
        };
        /** @description A page of a list. */
        AuditRecordPage: {
            /** @description What is on it. */
            items: {
                /**
                 * @description What was done.
                 * @example passkey.add
                 */
                action: string;
                /**
                 * @description Who did it.
                 * @example key:1a2b3c4d
                 */
                actorId: string;
                /**
                 * @description When.
                 * @example 2026-11-15T12:00:00.000Z
                 */
                at: string;
                /** @description What else is worth knowing. */
                details: Record<string, never>;
                /** @description The hash of this record. */
                hash: string;
                /** @description The hash of the record before. */
                prev: string;
                /**
                 * @description How it ended.
                 * @example ok
                 */
                result: string;
                /**
                 * Format: int64
                 * @description Its number.
                 */
                seq: number;
                /** @description Which of them; a passkey by its first digits and a hash. */
                subjectId: string;
                /** @description What kind of thing it is about. */
                subjectType: string;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description Whether the chain of the trail holds. */
        AuditVerification: {
            /**
             * Format: int64
             * @description The number of the record that the anchor beside the trail names: none up to it is missing if the chain holds.
             *     Those after it were written within the last moments, or the anchor could not be written; null without an anchor.
             */
            anchored?: number | null;
            /**
             * Format: int64
             * @description The number of the first record that should stand where something else does; null if the chain holds.
             */
            broken_at?: number | null;
            /** @description Whether it does. */
            holds: boolean;
            /**
             * Format: int64
             * @description The number of the last record that fits; null if there is none.
             */
            last?: number | null;
            /** @description Its hash: what to write down elsewhere, so that a trail that was cut off together with its anchor shows. */
            last_hash?: string | null;
            /** @description What is wrong there; null if the chain holds. */
            reason?: string | null;
            /**
             * Format: int64
             * @description Records that fit, up to the first that does not.
             */
            records: number;
            /**
             * Format: int64
             * @description Half-written lines that a crash or a full disk left behind, each told of by the record behind it.
             */
            torn: number;
        };
        /** @description Why ports are banned. */
        BanPorts: {
            /** @description For people; clients are not told. */
            reason?: string;
        };
        /** @description Ports in a row on which nobody may listen. */
        BannedPorts: {
            /**
             * Format: int32
             * @description The first.
             */
            first: number;
            /**
             * Format: int32
             * @description The last; the same as the first where it is only one.
             */
            last: number;
            /** @description Why, for people. */
            reason: string;
        };
        /** @description A page of a list. */
        BannedPortsPage: {
            /** @description What is on it. */
            items: {
                /**
                 * Format: int32
                 * @description The first.
                 */
                first: number;
                /**
                 * Format: int32
                 * @description The last; the same as the first where it is only one.
                 */
                last: number;
                /** @description Why, for people. */
                reason: string;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description What counters grew by while no tracker watched. */
        BridgedTransfer: {
            /** @description Bytes downloaded that are credited. */
            downloaded: string;
            /** @description Bytes uploaded that are credited. */
            uploaded: string;
            /** @description Bytes downloaded that are not. */
            withheld_downloaded: string;
            /** @description Bytes uploaded that are not: beyond what the ceiling allows for that time. */
            withheld_uploaded: string;
        };
        /** @description Programs whose peer ids begin alike. */
        ClientRule: {
            /** @description Whether they may announce. */
            allowed: boolean;
            /** @description What they are called. */
            name: string;
            /** @description The first characters of their peer ids, such as `-TR3`; `hex:` and digits for anything else. */
            prefix: string;
        };
        /** @description A page of a list. */
        ClientRulePage: {
            /** @description What is on it. */
            items: {
                /** @description Whether they may announce. */
                allowed: boolean;
                /** @description What they are called. */
                name: string;
                /** @description The first characters of their peer ids, such as `-TR3`; `hex:` and digits for anything else. */
                prefix: string;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description Connections by platform. */
        ConnectionsByPlatform: {
            /** Format: int64 */
            computer: number;
            /** Format: int64 */
            phone: number;
            /** Format: int64 */
            web: number;
        };
        /** @description A key to be made. */
        CreateKey: {
            /** @description Who or what will use it. */
            name: string;
            /** @description What it may do. */
            scopes: components["schemas"]["Scope"][];
        };
        /** @description A multiplier to be added. It ends after it starts. */
        CreateMultiplier: {
            /**
             * Format: int32
             * @description How much of what is downloaded counts. 0 is freeleech.
             * @default 100
             */
            download_percent: number | null;
            /**
             * Format: int64
             * @description Until when; until it is removed if left out.
             */
            ends_at?: number | null;
            /** @description Why. */
            note?: string;
            /**
             * @description What it is for.
             * @enum {string}
             */
            scope: "site";
            /**
             * Format: int64
             * @description From when on; now if left out.
             */
            starts_at?: number | null;
            /**
             * @description The number of the torrent or user.
             * @enum {integer|null}
             */
            subject?: 0 | null;
            /**
             * Format: int32
             * @description How much of what is uploaded counts.
             * @default 100
             */
            upload_percent: number | null;
        } | {
            /**
             * Format: int32
             * @description How much of what is downloaded counts. 0 is freeleech.
             * @default 100
             */
            download_percent: number | null;
            /**
             * Format: int64
             * @description Until when; until it is removed if left out.
             */
            ends_at?: number | null;
            /** @description Why. */
            note?: string;
            /**
             * @description What it is for.
             * @enum {string}
             */
            scope: "torrent" | "user";
            /**
             * Format: int64
             * @description From when on; now if left out.
             */
            starts_at?: number | null;
            /** @description The number of the torrent or user. */
            subject: number;
            /**
             * Format: int32
             * @description How much of what is uploaded counts.
             * @default 100
             */
            upload_percent: number | null;
        };
        /** @description A torrent to be added. */
        CreateTorrent: {
            /** @description False for one that awaits approval; true if left out. */
            approved?: boolean | null;
            /**
             * Format: int64
             * @description Its number on your site; left out for the next free one.
             */
            id?: number | null;
            /** @description Its infohash: 40 hexadecimal digits. */
            infohash: string;
            /** @description The second name of a hybrid torrent: the first 40 digits of its v2 hash. */
            infohash_v2?: string | null;
            /** @description What people call it. */
            name: string;
            /** @description The size of its content, in decimal digits. */
            total_bytes?: string | null;
        };
        /** @description A user to be added. */
        CreateUser: {
            /**
             * Format: int64
             * @description Their number on your site; left out for the next free one.
             */
            id?: number | null;
            /** @description The display name; left out or null for none. */
            name?: string | null;
            /** @description Their passkey; left out for a random one. */
            passkey?: string | null;
        };
        /** @description A key that was made just now. */
        CreatedKey: {
            /**
             * Format: int32
             * @description When it was made.
             */
            created_at: number;
            /** @description Its id: the first part of its text. */
            id: string;
            /**
             * @description All of it: what whoever uses it must send. It is shown this once and cannot be found out again.
             * @example rck_1a2b3c4d_0123456789abcdef0123456789abcdef01234567
             */
            key: string;
            /** @description What people call it. */
            name: string;
            /** @description What it may do. */
            scopes: components["schemas"]["Scope"][];
        };
        /** @description An entry that could not be taken. */
        DeadLetter: {
            /**
             * Format: int32
             * @description When it is tried again.
             */
            due_at: number;
            /**
             * Format: int32
             * @description When it last failed.
             */
            failed_at: number;
            /** @description What it says; a passkey only by its first digits, an address only for keys with `admin`. */
            fields: {
                [key: string]: string;
            };
            /** @description The group whose view could not take it. */
            group: string;
            /**
             * @description Its place among its like.
             * @example 1794742234000-0
             */
            id: string;
            /** @description Its place in the journal. */
            origin: string;
            /** @description Why it could not be taken. */
            reason: string;
            /**
             * Format: int32
             * @description How often it was tried again.
             */
            retry: number;
        };
        /** @description How many there were. */
        DeadLetterCount: {
            /**
             * Format: int64
             * @description How many of those meant were there.
             */
            count: number;
        };
        /** @description A page of a list. */
        DeadLetterPage: {
            /** @description What is on it. */
            items: {
                /**
                 * Format: int32
                 * @description When it is tried again.
                 */
                due_at: number;
                /**
                 * Format: int32
                 * @description When it last failed.
                 */
                failed_at: number;
                /** @description What it says; a passkey only by its first digits, an address only for keys with `admin`. */
                fields: {
                    [key: string]: string;
                };
                /** @description The group whose view could not take it. */
                group: string;
                /**
                 * @description Its place among its like.
                 * @example 1794742234000-0
                 */
                id: string;
                /** @description Its place in the journal. */
                origin: string;
                /** @description Why it could not be taken. */
                reason: string;
                /**
                 * Format: int32
                 * @description How often it was tried again.
                 */
                retry: number;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description Which entries are meant: all, or up to 1000 by their ids. */
        DeadLetterSelection: {
            /**
             * @description All that are there, instead of naming them.
             * @enum {boolean}
             */
            all?: false;
            /** @description The ids; up to 1000 of them. */
            ids: string[];
        } | {
            /**
             * @description All that are there, instead of naming them.
             * @enum {boolean}
             */
            all: true;
            /** @description The ids; up to 1000 of them. */
            ids?: string[];
        };
        /**
         * @description What a person can say of themselves.
         * @enum {string}
         */
        DeclaredStatus: "online" | "away" | "busy" | "invisible";
        /** @description How one dependency is, as it is written. */
        DependencyHealth: {
            /**
             * @description What it is.
             * @example database
             */
            name: string;
            /**
             * @description The dependency without which this one fails; null if it stands alone.
             * @example null
             */
            needs?: string | null;
            /** @description What is wrong; told only to callers with a key for `read`. */
            reason?: string | null;
            /**
             * Format: int32
             * @description Since when it has been so, in seconds since 1970.
             */
            since: number;
            /**
             * @description `ok`, `failing`, or `unknown` before it was first asked.
             * @example ok
             */
            state: string;
        };
        /** @description A device of a person. */
        Device: {
            /** @description Its name, as its client chose it. */
            id: string;
            /**
             * @description phone, computer or web.
             * @example web
             */
            platform: string;
            /**
             * @description foreground, background or inactive.
             * @example foreground
             */
            state: string;
            /**
             * @description online or away.
             * @example online
             */
            status: string;
        };
        /** @description How often connections ended for one cause. */
        DisconnectCause: {
            /**
             * @description The cause.
             * @example dropped
             */
            cause: string;
            /**
             * Format: int64
             * @description How often.
             */
            count: number;
        };
        /** @description What was disconnected. */
        DisconnectReply: {
            /** @description Sessions that were ended here, and devices at other gateways that are told to end theirs. */
            sessions: number;
        };
        /** @description Whom to disconnect. */
        DisconnectUser: {
            /** @description Only this device; all of them if left out. */
            device?: string | null;
            /**
             * @description Whether their clients may come back by themselves.
             * @default false
             */
            reconnect: boolean;
        };
        /** @description An announce of a user, or the end of a peer of theirs that fell silent. */
        Entry: {
            /**
             * Format: int32
             * @description When it was announced.
             */
            at: number;
            /**
             * @description What made it happen: announce, timeout or removal.
             * @example announce
             */
            cause: string;
            /** @description The program, such as `-TR3000-`; empty where the peer id does not tell. */
            client: string;
            /**
             * @description The client's number, as `GET /api/v1/users/{id}/torrents/{torrent}/clients` lists it.
             * @example 0123456789abcdef
             */
            client_id: string;
            /** @description So many of them count as downloaded; null likewise. */
            credited_downloaded?: string | null;
            /**
             * @description So many of them count as uploaded, by the multipliers in force; of what another producer wrote, no more than the
             *     ceiling allows. Null if that cannot be told, since an older version removed a multiplier.
             */
            credited_uploaded?: string | null;
            /** @description Bytes downloaded since the announce before. */
            downloaded_delta: string;
            /**
             * Format: int32
             * @description Seconds since the announce before; 0 where there was none, null where that is not known.
             */
            elapsed_s?: number | null;
            /**
             * @description none, started, completed or stopped.
             * @example started
             */
            event: string;
            /**
             * @description Its place in the journal.
             * @example 1794742234000-0
             */
            id: string;
            /**
             * @description Its infohash.
             * @example 0123456789abcdef0123456789abcdef01234567
             */
            infohash: string;
            /** @description From where; only for keys with `admin`. */
            ip?: string | null;
            /** @description Bytes still wanted; null if the client did not say. */
            left?: string | null;
            /** @description What people call it; null if it was removed. */
            name?: string | null;
            /** @description The client's id, in hexadecimal digits. */
            peer_id: string;
            /**
             * Format: int64
             * @description The torrent's number; null if nobody knows it any more.
             */
            torrent?: number | null;
            /** @description Bytes uploaded since the announce before. */
            uploaded_delta: string;
        };
        /** @description A page of entries. */
        EntryPage: {
            /** @description Whether the journal was read to its beginning. */
            complete: boolean;
            /** @description The entries, newest first. There may be few, or none, and still more to come. */
            items: components["schemas"]["Entry"][];
            /** @description Where to go on; null if the journal was read to its beginning. */
            next?: string | null;
            /**
             * Format: int64
             * @description How many entries were looked at for this page.
             */
            scanned: number;
            /**
             * Format: int64
             * @description When the oldest entry was written that the journal still has, whoever's it is; null if it has none.
             */
            since?: number | null;
        };
        /** @description What to connect with. */
        FeedToken: {
            /**
             * Format: int32
             * @description When it runs out.
             */
            expires_at: number;
            /** @description The token, for the Centrifuge SDK at `/connection/websocket`. */
            token: string;
        };
        /** @description What was moved, and how long. */
        Figures: {
            /**
             * Format: int64
             * @description How many times a user completed a torrent for the first time.
             */
            completed: number;
            /**
             * Format: int64
             * @description How many times a user completed a torrent again.
             */
            completed_again: number;
            /** @description Bytes downloaded, with what multipliers add or take. */
            credited_downloaded: string;
            /** @description Bytes uploaded, with what multipliers add. */
            credited_uploaded: string;
            /**
             * @description Bytes downloaded, as they are.
             * @example 549755813888
             */
            downloaded: string;
            /**
             * Format: int32
             * @description When first heard of.
             */
            first_seen?: number | null;
            /**
             * Format: int32
             * @description When last heard of.
             */
            last_seen?: number | null;
            /**
             * Format: int64
             * @description Seconds spent leeching, likewise.
             */
            leeching_s: number;
            /**
             * Format: int64
             * @description Seconds spent seeding: wall clock for each user on each torrent, however many clients seed at the same time.
             */
            seeding_s: number;
            /**
             * @description Bytes uploaded, as they are, in decimal digits.
             * @example 1099511627776
             */
            uploaded: string;
        };
        /** @description A friend. */
        Friend: {
            /**
             * Format: int64
             * @description Their number.
             */
            id: number;
            /**
             * Format: int32
             * @description Since when.
             */
            since: number;
        };
        /** @description A page of a list. */
        FriendPage: {
            /** @description What is on it. */
            items: {
                /**
                 * Format: int64
                 * @description Their number.
                 */
                id: number;
                /**
                 * Format: int32
                 * @description Since when.
                 */
                since: number;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description Two users who are to be friends, such as `[7, 9]` */
        FriendPair: number[];
        /** @description What a gateway does. */
        GatewayOverview: {
            /**
             * Format: double
             * @description Connections that people made, a second.
             */
            connects_per_s: number;
            /** @description Connections of people that ended since the start, by cause. */
            disconnects: components["schemas"]["DisconnectCause"][];
            /**
             * Format: double
             * @description Connections of people that ended, a second.
             */
            disconnects_per_s: number;
            heartbeat_delay_ms?: components["schemas"]["HeartbeatDelay"] | null;
            /**
             * Format: int64
             * @description Webhooks that are not delivered yet.
             */
            webhooks_waiting: number;
        };
        /** @description What a device says of itself. */
        Heartbeat: {
            app_state?: components["schemas"]["AppState"] | null;
            /** @description Its name: the same each time. */
            device: string;
            /**
             * @description The last heartbeat: the device is gone at once.
             * @default false
             */
            goodbye: boolean;
            platform?: components["schemas"]["Platform"] | null;
            status?: components["schemas"]["DeclaredStatus"] | null;
        };
        /** @description How long something took, in milliseconds. */
        HeartbeatDelay: {
            /**
             * Format: double
             * @description Half of them took no longer.
             */
            p50: number;
            /** @description Whether half of them took more than `p50`, which is then the longest time that is measured. */
            p50_exceeds: boolean;
            /**
             * Format: double
             * @description Of a hundred one took longer.
             */
            p99: number;
            /** @description Whether more than one of a hundred took more than `p99`, likewise. */
            p99_exceeds: boolean;
        };
        /** @description When to come again. */
        HeartbeatReply: {
            /**
             * Format: int32
             * @description After so many seconds; null after a goodbye.
             */
            next_s?: number | null;
        };
        /** @description What was so at one moment. Rates are over the step before it. */
        HistoryPoint: {
            /**
             * Format: double
             * @description Announces accepted, a second.
             */
            announces_per_s?: number | null;
            /**
             * Format: int32
             * @description When, in seconds since 1970.
             */
            at: number;
            /**
             * Format: double
             * @description Connections made, a second.
             */
            connects_per_s?: number | null;
            /**
             * Format: double
             * @description Connections ended, a second.
             */
            disconnects_per_s?: number | null;
            /**
             * Format: double
             * @description Bytes downloaded, a second.
             */
            download_bytes_per_s?: number | null;
            /** @description Entries that each view did not show yet; empty while the journal did not answer. */
            lag: {
                [key: string]: number;
            };
            /**
             * Format: int64
             * @description Peers that had not.
             */
            leechers?: number | null;
            /**
             * Format: int32
             * @description People who were here and could be seen; null without a gateway.
             */
            online?: number | null;
            /**
             * Format: int64
             * @description Peers that had the whole torrent; null without a tracker.
             */
            seeders?: number | null;
            /**
             * Format: double
             * @description Bytes uploaded, a second.
             */
            upload_bytes_per_s?: number | null;
        };
        /** @description Where a user owes seeding. */
        HitAndRun: {
            /** @description The account. */
            account: components["schemas"]["Account"];
            /**
             * Format: int32
             * @description Since when they are gone; null while they are there.
             */
            gone_since?: number | null;
            /**
             * Format: int64
             * @description How many more seconds of seeding or leeching are owed; null once it is a hit and run.
             */
            seeding_s_left?: number | null;
            /**
             * @description `owing` (there, and not active for long enough yet) or `hit_and_run` (gone without having been).
             * @example owing
             */
            standing: string;
        };
        /** @description A page of a list. */
        HitAndRunPage: {
            /** @description What is on it. */
            items: {
                /** @description The account. */
                account: components["schemas"]["Account"];
                /**
                 * Format: int32
                 * @description Since when they are gone; null while they are there.
                 */
                gone_since?: number | null;
                /**
                 * Format: int64
                 * @description How many more seconds of seeding or leeching are owed; null once it is a hit and run.
                 */
                seeding_s_left?: number | null;
                /**
                 * @description `owing` (there, and not active for long enough yet) or `hit_and_run` (gone without having been).
                 * @example owing
                 */
                standing: string;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description Pairs of users who are to be friends. */
        ImportFriends: {
            /** @description Up to 10000 of them. */
            pairs: components["schemas"]["FriendPair"][];
        };
        /** @description What became of pairs. */
        ImportFriendsReply: {
            /**
             * Format: int64
             * @description How many are friends only now.
             */
            added: number;
            /**
             * Format: int64
             * @description How many were friends already, or were named twice.
             */
            already: number;
        };
        /** @description A consumer group of the journal. */
        JournalGroup: {
            /**
             * Format: double
             * @description How old the oldest of them is, in seconds.
             */
            behind_s: number;
            /**
             * Format: int64
             * @description How many consumers it has.
             */
            consumers: number;
            /** @description The group. */
            group: string;
            /**
             * Format: int64
             * @description Entries that the view does not show yet.
             */
            lag: number;
            /** @description Whether an operator has paused it. */
            paused: boolean;
            /**
             * Format: int64
             * @description Of these: given and not finished.
             */
            pending: number;
            /**
             * Format: int64
             * @description Of these: not given to it yet.
             */
            unread: number;
            /** @description The view; null for readers of other programs. */
            view?: string | null;
        };
        /** @description How the journal is. */
        JournalOverview: {
            /**
             * Format: int64
             * @description Entries ever appended.
             */
            appended: number;
            /**
             * Format: double
             * @description Entries appended, a second.
             */
            appended_per_s: number;
            /**
             * Format: int64
             * @description Dead letters, which are tried again.
             */
            dlq: number;
            /**
             * Format: int64
             * @description Entries it holds.
             */
            entries: number;
            /**
             * Format: int64
             * @description Entries that were given up.
             */
            failed: number;
            /**
             * Format: int64
             * @description Risk events.
             */
            risks: number;
            /** @description Whether that is more than `journal.length_alarm`. */
            too_long: boolean;
            /** @description The views, each with how far it is. */
            views: components["schemas"]["ViewOverview"][];
        };
        /** @description How the journal is. */
        JournalStatus: {
            /**
             * Format: int64
             * @description Entries ever appended.
             */
            appended: number;
            /**
             * Format: int64
             * @description Dead letters, which are tried again.
             */
            dlq: number;
            /**
             * Format: int64
             * @description Entries it holds.
             */
            entries: number;
            /**
             * Format: int64
             * @description Entries that were given up.
             */
            failed: number;
            /** @description Whoever reads it, by group. */
            groups: components["schemas"]["JournalGroup"][];
            /**
             * Format: int64
             * @description Risk events.
             */
            risks: number;
            /** @description Whether that is more than `journal.length_alarm`. */
            too_long: boolean;
        };
        /** @description A key, without its secret. */
        Key: {
            /**
             * Format: int32
             * @description When it was made.
             */
            created_at: number;
            /**
             * @description Its id: the first part of its text.
             * @example 1a2b3c4d
             */
            id: string;
            /**
             * Format: int32
             * @description When it was used last, to the minute; null if never.
             */
            last_used_at?: number | null;
            /** @description What people call it. */
            name: string;
            /**
             * Format: int32
             * @description When it was revoked; null if it works.
             */
            revoked_at?: number | null;
            /** @description What it may do. */
            scopes: components["schemas"]["Scope"][];
        };
        /** @description A page of a list. */
        KeyPage: {
            /** @description What is on it. */
            items: {
                /**
                 * Format: int32
                 * @description When it was made.
                 */
                created_at: number;
                /**
                 * @description Its id: the first part of its text.
                 * @example 1a2b3c4d
                 */
                id: string;
                /**
                 * Format: int32
                 * @description When it was used last, to the minute; null if never.
                 */
                last_used_at?: number | null;
                /** @description What people call it. */
                name: string;
                /**
                 * Format: int32
                 * @description When it was revoked; null if it works.
                 */
                revoked_at?: number | null;
                /** @description What it may do. */
                scopes: components["schemas"]["Scope"][];
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description A torrent and how many are on it. */
        ListedSwarm: {
            /**
             * Format: int32
             * @description Peers that do not; null likewise.
             */
            leechers?: number | null;
            /**
             * Format: int32
             * @description Peers that have everything; null if this process cannot know.
             */
            seeders?: number | null;
            /**
             * Format: int32
             * @description How often it was completed; null likewise.
             */
            snatches?: number | null;
            /** @description The torrent. */
            torrent: components["schemas"]["TorrentSummary"];
        };
        /** @description A user of a list, with what they moved and what they do now. */
        ListedUser: components["schemas"]["User"] & {
            figures?: components["schemas"]["Figures"] | null;
            /**
             * Format: int64
             * @description How many torrents they leech right now; null likewise.
             */
            leeching?: number | null;
            /**
             * Format: double
             * @description Uploaded by downloaded, both as credited; null where nothing was downloaded.
             * @example 1.5
             */
            ratio?: number | null;
            /**
             * Format: int64
             * @description How many torrents they seed right now; null while that cannot be read.
             */
            seeding?: number | null;
        };
        /** @description That the server lives. */
        Liveness: {
            /**
             * @description Always `alive`.
             * @example alive
             */
            state: string;
            /** @description Which version it is. */
            version: string;
        };
        /** @description Which passkeys are meant. */
        LookupPasskeys: {
            /** @description Up to 1000 of them. */
            passkeys: components["schemas"]["Passkey"][];
        };
        /** @description What a person may know of themselves. */
        Me: {
            figures?: components["schemas"]["Figures"] | null;
            /**
             * Format: int64
             * @description How many friends they have.
             */
            friends: number;
            /**
             * Format: int64
             * @description How many torrents they left without having seeded enough, of the first 50000 that they ever had. Counted once a
             *     minute at the most.
             */
            hit_and_runs: number;
            /**
             * Format: int64
             * @description Their number.
             */
            id: number;
            /** @description What they leech right now. */
            leeching: components["schemas"]["OwnTorrents"];
            /** @description What their own devices see of them: also that they hide. */
            presence: components["schemas"]["Presence"];
            /**
             * Format: double
             * @description What counts as uploaded for each byte that counts as downloaded; null while nothing does.
             * @example 1.5
             */
            ratio?: number | null;
            /** @description What they seed right now. */
            seeding: components["schemas"]["OwnTorrents"];
            /** @description Their sessions at this gateway. */
            sessions: components["schemas"]["Session"][];
        };
        /** @description A time in which bytes count more or less than they are. */
        Multiplier: {
            /**
             * Format: int32
             * @description How much of what is downloaded counts.
             */
            download_percent: number;
            /**
             * Format: int32
             * @description Until when; null until it is removed.
             */
            ends_at?: number | null;
            /**
             * Format: int64
             * @description Its number.
             */
            id: number;
            /** @description Why. */
            note: string;
            /**
             * @description What it is for: `site`, `torrent` or `user`.
             * @example site
             */
            scope: string;
            /**
             * Format: int32
             * @description From when on.
             */
            starts_at: number;
            /**
             * Format: int64
             * @description The number of the torrent or user; 0 for the site.
             */
            subject: number;
            /**
             * Format: int32
             * @description How much of what is uploaded counts.
             */
            upload_percent: number;
        };
        /** @description A page of a list. */
        MultiplierPage: {
            /** @description What is on it. */
            items: {
                /**
                 * Format: int32
                 * @description How much of what is downloaded counts.
                 */
                download_percent: number;
                /**
                 * Format: int32
                 * @description Until when; null until it is removed.
                 */
                ends_at?: number | null;
                /**
                 * Format: int64
                 * @description Its number.
                 */
                id: number;
                /** @description Why. */
                note: string;
                /**
                 * @description What it is for: `site`, `torrent` or `user`.
                 * @example site
                 */
                scope: string;
                /**
                 * Format: int32
                 * @description From when on.
                 */
                starts_at: number;
                /**
                 * Format: int64
                 * @description The number of the torrent or user; 0 for the site.
                 */
                subject: number;
                /**
                 * Format: int32
                 * @description How much of what is uploaded counts.
                 */
                upload_percent: number;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /**
         * @description What happened to somebody.
         * @enum {string}
         */
        OccurrenceEvent: "joined" | "left" | "status";
        /** @description A device of somebody who is here. */
        OnlineDevice: {
            /**
             * @description phone, computer or web.
             * @example web
             */
            platform: string;
            /**
             * @description foreground, background or inactive.
             * @example foreground
             */
            state: string;
            /**
             * @description online or away.
             * @example online
             */
            status: string;
        };
        /** @description Somebody who is here. */
        OnlinePerson: {
            /** @description Their devices. */
            devices: components["schemas"]["OnlineDevice"][];
            /**
             * Format: int64
             * @description The user's number.
             */
            id: number;
            /**
             * Format: int32
             * @description Torrents they leech right now.
             */
            leeching: number;
            /**
             * Format: int32
             * @description Torrents they seed right now.
             */
            seeding: number;
            /**
             * Format: int32
             * @description Since when they are here, in seconds since 1970; null for who is pending, and to keys without `admin`, since it also
             *     counts the time in which they hid.
             */
            since?: number | null;
            /**
             * @description online, away, busy, invisible or pending.
             * @example online
             */
            status: string;
            /** @description What they wrote beside it. */
            text?: string | null;
        };
        /** @description A page of a list. */
        OnlinePersonPage: {
            /** @description What is on it. */
            items: {
                /** @description Their devices. */
                devices: components["schemas"]["OnlineDevice"][];
                /**
                 * Format: int64
                 * @description The user's number.
                 */
                id: number;
                /**
                 * Format: int32
                 * @description Torrents they leech right now.
                 */
                leeching: number;
                /**
                 * Format: int32
                 * @description Torrents they seed right now.
                 */
                seeding: number;
                /**
                 * Format: int32
                 * @description Since when they are here, in seconds since 1970; null for who is pending, and to keys without `admin`, since it also
                 *     counts the time in which they hid.
                 */
                since?: number | null;
                /**
                 * @description online, away, busy, invisible or pending.
                 * @example online
                 */
                status: string;
                /** @description What they wrote beside it. */
                text?: string | null;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description Who is signed in. */
        OperatorSession: {
            /** @description What to send as `X-CSRF-Token` with every change. */
            csrf: string;
            /**
             * Format: int32
             * @description When the session ends.
             */
            expires_at: number;
            /**
             * @description The key they signed in with.
             * @example 1a2b3c4d
             */
            key_id: string;
            /** @description What people call it. */
            name: string;
            /**
             * @description What it may do: `verify`, `read`, `admin`.
             * @example [
             *       "admin"
             *     ]
             */
            scopes: string[];
        };
        /** @description Everything at a glance, as of one second. */
        Overview: {
            /** @description What is wrong, what is critical first. */
            alerts: components["schemas"]["Alert"][];
            /**
             * Format: int64
             * @description When it was put together, in milliseconds since 1970.
             */
            at_ms: number;
            gateway?: components["schemas"]["GatewayOverview"] | null;
            /** @description What the server depends on. */
            health: components["schemas"]["DependencyHealth"][];
            journal?: components["schemas"]["JournalOverview"] | null;
            /**
             * @description The name of this process among others.
             * @example node-a
             */
            node: string;
            people?: components["schemas"]["PresenceCount"] | null;
            /**
             * Format: int32
             * @description When this process began, in seconds since 1970.
             */
            started_at: number;
            tracker?: components["schemas"]["TrackerOverview"] | null;
            /** @description Which version this is. */
            version: string;
        };
        /** @description The last hour. */
        OverviewHistory: {
            /** @description The oldest first; of the time before this process began there are none. */
            points: components["schemas"]["HistoryPoint"][];
            /**
             * Format: int32
             * @description Seconds from one point to the next.
             * @example 10
             */
            step_s: number;
        };
        /** @description A torrent that a person seeds or leeches. */
        OwnTorrent: {
            /**
             * @description Its one name.
             * @example 0123456789abcdef0123456789abcdef01234567
             */
            infohash: string;
            /**
             * Format: int32
             * @description The last announce.
             */
            last_announce: number;
            /** @description Bytes still wanted, by the latest announce; null if the client did not say. */
            left?: string | null;
            /** @description What people call it; null likewise. */
            name?: string | null;
            /**
             * Format: int64
             * @description Its number; null if nobody knows it any more.
             */
            torrent?: number | null;
            /** @description The size of its content; null if it is not known. */
            total_bytes?: string | null;
        };
        /** @description What a person seeds or leeches. */
        OwnTorrents: {
            /**
             * Format: int64
             * @description How many there are in all.
             */
            count: number;
            /** @description Up to 50 of them, newest announce first. */
            items: components["schemas"]["OwnTorrent"][];
        };
        /** @description A passkey as a caller writes it: 8 to 64 hexadecimal digits; upper case is taken as lower case. */
        Passkey: string;
        /** @description Whose passkey it is. */
        PasskeyHolder: {
            /** @description The passkey, as it was sent. */
            passkey: string;
            /**
             * Format: int64
             * @description The user; null if nobody has it.
             */
            user?: number | null;
        };
        /** @description A page of a list. */
        PasskeyHolderPage: {
            /** @description What is on it. */
            items: {
                /** @description The passkey, as it was sent. */
                passkey: string;
                /**
                 * Format: int64
                 * @description The user; null if nobody has it.
                 */
                user?: number | null;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description A peer of a swarm. */
        Peer: {
            /** @description Where it can be reached; only for keys with `admin`. */
            addresses?: string[] | null;
            /** @description The program, such as `-TR3000-`; empty where the peer id does not tell. */
            client: string;
            /** @description Its running total. */
            downloaded: string;
            /**
             * Format: int32
             * @description When it last announced.
             */
            last_announce: number;
            /** @description Bytes it still wants, according to the accounts; null if they do not say. */
            left?: string | null;
            /** @description The client's id, in hexadecimal digits. */
            peer_id: string;
            /** @description Whether it has everything. */
            seeding: boolean;
            /** @description Its running total. */
            uploaded: string;
            /**
             * Format: int64
             * @description Whose it is.
             */
            user: number;
        };
        /** @description A page of a list. */
        PeerPage: {
            /** @description What is on it. */
            items: {
                /** @description Where it can be reached; only for keys with `admin`. */
                addresses?: string[] | null;
                /** @description The program, such as `-TR3000-`; empty where the peer id does not tell. */
                client: string;
                /** @description Its running total. */
                downloaded: string;
                /**
                 * Format: int32
                 * @description When it last announced.
                 */
                last_announce: number;
                /** @description Bytes it still wants, according to the accounts; null if they do not say. */
                left?: string | null;
                /** @description The client's id, in hexadecimal digits. */
                peer_id: string;
                /** @description Whether it has everything. */
                seeding: boolean;
                /** @description Its running total. */
                uploaded: string;
                /**
                 * Format: int64
                 * @description Whose it is.
                 */
                user: number;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /**
         * @description What kind of device it is.
         * @enum {string}
         */
        Platform: "phone" | "computer" | "web";
        /** @description A person, as others see them. */
        Presence: {
            /** @description Their devices, if they are here. */
            devices: components["schemas"]["Device"][];
            /**
             * @description Their number, as a text.
             * @example 7
             */
            id: string;
            /**
             * Format: int32
             * @description When they were last here; null if that is not known.
             */
            last_seen?: number | null;
            /**
             * Format: int32
             * @description Torrents they leech right now.
             */
            leeching: number;
            /**
             * Format: int32
             * @description Torrents they seed right now.
             */
            seeding: number;
            /**
             * @description offline, pending, away, online or busy.
             * @example online
             */
            status: string;
            /** @description What they wrote beside their status. */
            text?: string | null;
            /**
             * Format: int32
             * @description When what they declared ends by itself.
             */
            until?: number | null;
            /**
             * Format: int64
             * @description Grows with every change; 0 if nobody ever heard of them.
             */
            version: number;
        };
        /** @description How many are here. */
        PresenceCount: {
            /**
             * Format: int32
             * @description Sessions with a connection, also of people who hide. Null to keys without `admin`, as are the next two: compared
             *     with the devices of those who are seen, they would tell how many hide.
             */
            connections?: number | null;
            /**
             * Format: int32
             * @description People who are here and can be seen.
             */
            online: number;
            /** @description People by status, as others see them. */
            people: components["schemas"]["UsersByStatus"];
            platforms?: components["schemas"]["ConnectionsByPlatform"] | null;
            /**
             * Format: int32
             * @description Sessions that live by heartbeats over HTTP.
             */
            without_connection?: number | null;
        };
        /** @description Something that happened to a person. */
        PresenceEvent: {
            /**
             * Format: int64
             * @description When, in milliseconds since 1970.
             */
            at_ms: number;
            /**
             * @description Why.
             * @example silence
             */
            cause?: string | null;
            /** @description By which device. */
            device?: string | null;
            /**
             * @description arrived (first device in), left (last device out) or transition (another status).
             * @example transition
             */
            event: string;
            /** @description The status before a transition, as their own devices saw it. */
            from?: string | null;
            /**
             * Format: int64
             * @description Its number; later ones have higher numbers.
             */
            id: number;
            /** @description The status after it. */
            to?: string | null;
        };
        /** @description A page of a list. */
        PresenceEventPage: {
            /** @description What is on it. */
            items: {
                /**
                 * Format: int64
                 * @description When, in milliseconds since 1970.
                 */
                at_ms: number;
                /**
                 * @description Why.
                 * @example silence
                 */
                cause?: string | null;
                /** @description By which device. */
                device?: string | null;
                /**
                 * @description arrived (first device in), left (last device out) or transition (another status).
                 * @example transition
                 */
                event: string;
                /** @description The status before a transition, as their own devices saw it. */
                from?: string | null;
                /**
                 * Format: int64
                 * @description Its number; later ones have higher numbers.
                 */
                id: number;
                /** @description The status after it. */
                to?: string | null;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description Somebody came, went or changed; also as the operators' feed tells it. */
        PresenceOccurrence: {
            /**
             * Format: int64
             * @description When, in milliseconds since 1970.
             */
            at_ms: number;
            /**
             * @description Why. To keys without `admin`, `connect` for everybody who comes, and `close` for everybody who goes.
             * @example connect
             */
            cause: string;
            /** @description joined, left or status. */
            event: components["schemas"]["OccurrenceEvent"];
            /**
             * @description The status before.
             * @example offline
             */
            from: string;
            /**
             * @description phone, computer or web; null where that is not known, as of a device that has gone. To keys without `admin`, null
             *     for everybody who comes or goes.
             * @example web
             */
            platform?: string | null;
            /**
             * @description The status after.
             * @example online
             */
            to: string;
            /**
             * Format: int64
             * @description The user's number.
             */
            user: number;
        };
        /** @description What happened lately. */
        PresenceOccurrences: {
            /** @description The newest first. */
            items: components["schemas"]["PresenceOccurrence"][];
        };
        /** @description A page of a list. */
        PresencePage: {
            /** @description What is on it. */
            items: {
                /** @description Their devices, if they are here. */
                devices: components["schemas"]["Device"][];
                /**
                 * @description Their number, as a text.
                 * @example 7
                 */
                id: string;
                /**
                 * Format: int32
                 * @description When they were last here; null if that is not known.
                 */
                last_seen?: number | null;
                /**
                 * Format: int32
                 * @description Torrents they leech right now.
                 */
                leeching: number;
                /**
                 * Format: int32
                 * @description Torrents they seed right now.
                 */
                seeding: number;
                /**
                 * @description offline, pending, away, online or busy.
                 * @example online
                 */
                status: string;
                /** @description What they wrote beside their status. */
                text?: string | null;
                /**
                 * Format: int32
                 * @description When what they declared ends by itself.
                 */
                until?: number | null;
                /**
                 * Format: int64
                 * @description Grows with every change; 0 if nobody ever heard of them.
                 */
                version: number;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description Who may see what of a person. */
        Privacy: {
            /** @description Who sees when they were last here; only of those who see the status. */
            last_seen: components["schemas"]["Audience"];
            /** @description Who never sees anything. */
            never: number[];
            /** @description Who sees their status, text, devices and what they seed. */
            status: components["schemas"]["Audience"];
        };
        /** @description A problem as it is written (RFC 9457). */
        Problem: {
            /**
             * @description What kind of problem it is, for programs.
             * @example unknown_user
             */
            code: string;
            /**
             * @description What is wrong with this request, and what to do, for people.
             * @example there is no user 7: see GET /api/v1/users
             */
            detail: string;
            /**
             * Format: int32
             * @description The status, as in the head of the response.
             * @example 404
             */
            status: number;
            /**
             * @description The name of the status.
             * @example Not Found
             */
            title: string;
        };
        /** @description Which people are meant. */
        QueryPresence: {
            /** @description Up to 10,000 of them. */
            users: components["schemas"]["UserIdOrString"][];
        };
        /** @description How many of each kind there are. */
        QueueCounts: {
            /** Format: int64 */
            approval: number;
            /** Format: int64 */
            dead_letter: number;
            /** Format: int64 */
            failed_entry: number;
            /**
             * Format: int64
             * @description Null while all accounts are being looked through for the first time.
             */
            hit_and_run?: number | null;
            /** Format: int64 */
            risk: number;
        };
        /** @description Something that waits for staff. Of the last three fields, the one that belongs to the kind is there. */
        QueueItem: {
            /**
             * Format: int64
             * @description When: the risk was reported, the user was last heard of, the torrent was added, the entry failed.
             */
            at: number;
            hit_and_run?: components["schemas"]["HitAndRun"] | null;
            /**
             * @description Its place in the queue; no two items have the same.
             * @example 1794742234000-0-7-0
             */
            id: string;
            kind: components["schemas"]["QueueKind"];
            letter?: components["schemas"]["DeadLetter"] | null;
            risk?: components["schemas"]["RiskEvent"] | null;
            torrent?: components["schemas"]["QueueTorrent"] | null;
            user?: components["schemas"]["QueueUser"] | null;
        };
        /**
         * @description What an item is. The order decides between items of the same moment.
         * @enum {string}
         */
        QueueKind: "risk" | "hit_and_run" | "approval" | "dead_letter" | "failed_entry";
        /** @description A page of the queue. */
        QueuePage: {
            /** @description How many of each kind there are, on all pages. */
            counts: components["schemas"]["QueueCounts"];
            /** @description What is on this page, the newest first. */
            items: components["schemas"]["QueueItem"][];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description A torrent, by number and name. */
        QueueTorrent: {
            /** Format: int64 */
            id: number;
            /** @description Null if it was removed. */
            infohash?: string | null;
            /** @description What people call it; null if it was removed. */
            name?: string | null;
            /** @description The size of its content; null if it was removed, `"0"` where it is not known. */
            total_bytes?: string | null;
        };
        /** @description A user, by number and name. */
        QueueUser: {
            /** @description Whether they may announce; null if they were removed. */
            enabled?: boolean | null;
            /** Format: int64 */
            id: number;
            /** @description The display name; null if there is none. */
            name?: string | null;
        };
        /** @description How everything is that the server depends on. */
        Readiness: {
            /** @description One by one. */
            dependencies: components["schemas"]["DependencyHealth"][];
            /** @description Whether all of it is well. */
            ready: boolean;
        };
        /** @description A device of a person at another gateway. */
        RemoteDevice: {
            /** @description The device. */
            device: string;
            /**
             * @description The gateway.
             * @example gw-b
             */
            node: string;
            /**
             * @description phone, computer or web.
             * @example web
             */
            platform: string;
            /**
             * @description foreground, background or inactive.
             * @example foreground
             */
            state: string;
            /**
             * @description online or away.
             * @example online
             */
            status: string;
        };
        /** @description An announce, or a series of them, that looks like cheating. Which figures belong to it depends on its kind. */
        RiskEvent: {
            /**
             * Format: int32
             * @description When.
             */
            at?: number | null;
            /** @description The limit in force, in bytes a second; 0 for kinds that are not about a rate. */
            ceiling_bytes_per_s: string;
            /**
             * Format: int64
             * @description How many users share the address (`shared_address`, at least), or how many peer ids the user had on the torrent
             *     within an hour (`many_peer_ids`); 0 for other kinds.
             */
            count: number;
            /** @description Bytes that were claimed to be downloaded. */
            downloaded_claimed: string;
            /** @description Bytes that were credited instead. */
            downloaded_credited: string;
            /**
             * Format: int64
             * @description Seconds since the announce before.
             */
            elapsed_s?: number | null;
            /** @description Its place among the risk events. */
            id: string;
            /** @description Its infohash. */
            infohash: string;
            /** @description From where; only for keys with `admin`. */
            ip?: string | null;
            /** @enum {string} */
            kind: "client_rate" | "user_rate" | "upload_without_leechers" | "upload_after_stop" | "upload_ahead_of_download" | "left_without_download" | "completed_without_download" | "shared_address" | "many_peer_ids";
            /** @description The client's id, in hexadecimal digits. */
            peer_id: string;
            /**
             * Format: int64
             * @description Which torrent.
             */
            torrent?: number | null;
            /**
             * Format: int64
             * @description How many more of this user and kind went unreported before this one.
             */
            unreported?: number | null;
            /** @description Bytes that were claimed to be uploaded. */
            uploaded_claimed: string;
            /** @description Bytes that were credited instead. */
            uploaded_credited: string;
            /**
             * Format: int64
             * @description Who announced.
             */
            user?: number | null;
        };
        /** @description A page of a list. */
        RiskEventPage: {
            /** @description What is on it. */
            items: {
                /**
                 * Format: int32
                 * @description When.
                 */
                at?: number | null;
                /** @description The limit in force, in bytes a second; 0 for kinds that are not about a rate. */
                ceiling_bytes_per_s: string;
                /**
                 * Format: int64
                 * @description How many users share the address (`shared_address`, at least), or how many peer ids the user had on the torrent
                 *     within an hour (`many_peer_ids`); 0 for other kinds.
                 */
                count: number;
                /** @description Bytes that were claimed to be downloaded. */
                downloaded_claimed: string;
                /** @description Bytes that were credited instead. */
                downloaded_credited: string;
                /**
                 * Format: int64
                 * @description Seconds since the announce before.
                 */
                elapsed_s?: number | null;
                /** @description Its place among the risk events. */
                id: string;
                /** @description Its infohash. */
                infohash: string;
                /** @description From where; only for keys with `admin`. */
                ip?: string | null;
                /** @enum {string} */
                kind: "client_rate" | "user_rate" | "upload_without_leechers" | "upload_after_stop" | "upload_ahead_of_download" | "left_without_download" | "completed_without_download" | "shared_address" | "many_peer_ids";
                /** @description The client's id, in hexadecimal digits. */
                peer_id: string;
                /**
                 * Format: int64
                 * @description Which torrent.
                 */
                torrent?: number | null;
                /**
                 * Format: int64
                 * @description How many more of this user and kind went unreported before this one.
                 */
                unreported?: number | null;
                /** @description Bytes that were claimed to be uploaded. */
                uploaded_claimed: string;
                /** @description Bytes that were credited instead. */
                uploaded_credited: string;
                /**
                 * Format: int64
                 * @description Who announced.
                 */
                user?: number | null;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description A passkey to give. */
        RotatePasskey: {
            /** @description The new passkey; left out for a random one. */
            passkey?: string | null;
        };
        /**
         * @description What a key may do.
         * @enum {string}
         */
        Scope: "verify" | "read" | "admin";
        /** @description A session of a person, for keys with `admin`. */
        Session: {
            /** @description Whether it holds a connection; otherwise it sends heartbeats over HTTP. */
            connected: boolean;
            /** @description The device. */
            device: string;
            /** @description When it was heard, the latest first, ten times at the most; in milliseconds since 1970. */
            heartbeats_ms: number[];
            /**
             * @description The gateway, where there are several.
             * @example gw-a
             */
            node?: string | null;
            /**
             * @description phone, computer or web.
             * @example web
             */
            platform: string;
            /**
             * Format: int32
             * @description When it began.
             */
            since: number;
            /**
             * @description foreground, background or inactive.
             * @example foreground
             */
            state: string;
            /**
             * @description online or away.
             * @example online
             */
            status: string;
        };
        /** @description What becomes of programs with a prefix. */
        SetClientRule: {
            /** @description Whether they may announce. */
            allowed: boolean;
            /** @description What they are called. */
            name?: string;
        };
        /** @description Who may see what of a person from now on. */
        SetPrivacy: {
            /** @description Who sees when they were last here; only of those who see the status. */
            last_seen: components["schemas"]["Audience"];
            /** @description Who never sees anything; up to 1000 users. */
            never?: components["schemas"]["UserId"][];
            /** @description Who sees their status, text, devices and what they seed. */
            status: components["schemas"]["Audience"];
        };
        /**
         * @description How bad something is.
         * @enum {string}
         */
        Severity: "critical" | "warning";
        /** @description A key, to sign in with. */
        SignIn: {
            /**
             * @description The key.
             * @example rck_1a2b3c4d_0123456789abcdef0123456789abcdef01234567
             */
            key: string;
        };
        /** @description The whole at a glance. */
        Stats: {
            /**
             * Format: int64
             * @description How many torrents there are, enabled or not.
             */
            torrents: number;
            tracker?: components["schemas"]["TrackerStats"] | null;
            /**
             * Format: int64
             * @description How many users there are, enabled or not.
             */
            users: number;
            /** @description Which version this is. */
            version: string;
        };
        /**
         * @description Counters of a client that went on without a break, as far as trackers watched. How far they went is credited, up to
         *     the client's rate limit, and what was bridged before it.
         */
        Stretch: {
            bridged?: components["schemas"]["BridgedTransfer"] | null;
            /** @description Bytes downloaded that are credited of it. */
            downloaded: string;
            /** @description The highest. */
            downloaded_high: string;
            /** @description The lowest the client said it had downloaded. */
            downloaded_low: string;
            /**
             * Format: int32
             * @description When they were first heard.
             */
            first: number;
            /** @description Whether it is only the end of those that were put away: see `settled` of the client. */
            is_settled: boolean;
            /**
             * Format: int32
             * @description When they were last heard.
             */
            last: number;
            /**
             * Format: int64
             * @description How many tracker processes heard them; what several heard counts once.
             */
            nodes: number;
            /** @description Bytes uploaded that are credited of it. */
            uploaded: string;
            /** @description The highest. */
            uploaded_high: string;
            /** @description The lowest the client said it had uploaded. */
            uploaded_low: string;
            /** @description Bytes downloaded that are not, likewise. */
            withheld_downloaded: string;
            /** @description Bytes uploaded that are not, being more than the client's rate limit allows. */
            withheld_uploaded: string;
        };
        /** @description How many are on a torrent. */
        SwarmCounts: {
            /**
             * Format: int32
             * @description Peers that do not.
             */
            leechers: number;
            /**
             * Format: int32
             * @description Peers that have everything.
             */
            seeders: number;
            /**
             * Format: int32
             * @description How often it was completed since this process started.
             */
            snatches: number;
        };
        /** @description A page of torrents and how many are on them. */
        SwarmPage: {
            /** @description What is on this page. */
            items: components["schemas"]["ListedSwarm"][];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
            /**
             * Format: int64
             * @description How many there are in all; of a search that finds more than 100000, so many.
             */
            total: number;
        };
        /** @description A torrent. */
        Torrent: {
            /** @description Whether it is open to all. While it awaits approval it may be announced, but nobody is given peers. */
            approved: boolean;
            /**
             * Format: int32
             * @description When it was added.
             */
            created_at: number;
            /** @description Whether it may be announced. */
            enabled: boolean;
            /**
             * Format: int64
             * @description Its number.
             */
            id: number;
            /**
             * @description Its one name.
             * @example 0123456789abcdef0123456789abcdef01234567
             */
            infohash: string;
            /** @description The second name of a hybrid torrent. */
            infohash_v2?: string | null;
            /**
             * Format: int64
             * @description How many peers may leech it at once: a number, -1 for any number, null for the configured default.
             */
            leech_slots?: number | null;
            /** @description What people call it. */
            name: string;
            swarm?: components["schemas"]["SwarmCounts"] | null;
            /** @description The size of its content; `"0"` where it is not known. */
            total_bytes: string;
        };
        /** @description A user's account on a torrent. */
        TorrentAccount: {
            /** @description The program that announced it last, such as `-TR3000-`. */
            client: string;
            /**
             * Format: int32
             * @description When it was first completed.
             */
            completed_at?: number | null;
            /** @description The amounts. */
            figures: components["schemas"]["Figures"];
            /** @description Whether the user leeches it right now. */
            leeching: boolean;
            /** @description Bytes still wanted, by the latest announce; null if the client did not say. */
            left?: string | null;
            /** @description Whether the user seeds it right now. */
            seeding: boolean;
            /**
             * Format: int64
             * @description The user.
             */
            user: number;
        };
        /** @description A page of a list. */
        TorrentAccountPage: {
            /** @description What is on it. */
            items: {
                /** @description The program that announced it last, such as `-TR3000-`. */
                client: string;
                /**
                 * Format: int32
                 * @description When it was first completed.
                 */
                completed_at?: number | null;
                /** @description The amounts. */
                figures: components["schemas"]["Figures"];
                /** @description Whether the user leeches it right now. */
                leeching: boolean;
                /** @description Bytes still wanted, by the latest announce; null if the client did not say. */
                left?: string | null;
                /** @description Whether the user seeds it right now. */
                seeding: boolean;
                /**
                 * Format: int64
                 * @description The user.
                 */
                user: number;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description A torrent, and what was moved of it. */
        TorrentDetails: {
            figures?: components["schemas"]["Figures"] | null;
            /** @description The torrent. */
            torrent: components["schemas"]["Torrent"];
        };
        /** @description A page of a list. */
        TorrentPage: {
            /** @description What is on it. */
            items: {
                /** @description Whether it is open to all. While it awaits approval it may be announced, but nobody is given peers. */
                approved: boolean;
                /**
                 * Format: int32
                 * @description When it was added.
                 */
                created_at: number;
                /** @description Whether it may be announced. */
                enabled: boolean;
                /**
                 * Format: int64
                 * @description Its number.
                 */
                id: number;
                /**
                 * @description Its one name.
                 * @example 0123456789abcdef0123456789abcdef01234567
                 */
                infohash: string;
                /** @description The second name of a hybrid torrent. */
                infohash_v2?: string | null;
                /**
                 * Format: int64
                 * @description How many peers may leech it at once: a number, -1 for any number, null for the configured default.
                 */
                leech_slots?: number | null;
                /** @description What people call it. */
                name: string;
                swarm?: components["schemas"]["SwarmCounts"] | null;
                /** @description The size of its content; `"0"` where it is not known. */
                total_bytes: string;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
        };
        /** @description What a torrent is, without its swarm. */
        TorrentSummary: {
            /** @description Whether it is open to all. */
            approved: boolean;
            /**
             * Format: int32
             * @description When it was added.
             */
            created_at: number;
            /** @description Whether it may be announced. */
            enabled: boolean;
            /**
             * Format: int64
             * @description Its number.
             */
            id: number;
            /**
             * @description Its one name.
             * @example 0123456789abcdef0123456789abcdef01234567
             */
            infohash: string;
            /** @description What people call it. */
            name: string;
            /** @description The size of its content; `"0"` where it is not known. */
            total_bytes: string;
        };
        /** @description What a tracker does. */
        TrackerOverview: {
            /**
             * Format: int64
             * @description Announces accepted since the start.
             */
            announces: number;
            /**
             * Format: double
             * @description Announces accepted, a second.
             */
            announces_per_s: number;
            /**
             * Format: double
             * @description Bytes downloaded, a second, likewise.
             */
            download_bytes_per_s: number;
            /** @description Bytes downloaded since the start, likewise. */
            downloaded: string;
            /**
             * Format: int64
             * @description Those that do not.
             */
            leechers: number;
            /**
             * Format: int64
             * @description Peers on all torrents.
             */
            peers: number;
            /**
             * Format: double
             * @description Requests refused, a second.
             */
            refused_per_s: number;
            /**
             * Format: int64
             * @description Those of them that have the whole torrent.
             */
            seeders: number;
            /**
             * Format: int64
             * @description Torrents that have, or had, peers since the start.
             */
            torrents_active: number;
            /**
             * Format: int64
             * @description Torrents that have a leecher now.
             */
            torrents_leeched: number;
            /**
             * Format: int64
             * @description Torrents that have a seeder now.
             */
            torrents_seeded: number;
            /**
             * Format: double
             * @description Bytes uploaded, a second. Clients tell of them when they announce, so they come in lumps.
             */
            upload_bytes_per_s: number;
            /** @description Bytes uploaded since the start, as credited to raw accounts. */
            uploaded: string;
        };
        /** @description What a tracker does. */
        TrackerStats: {
            /**
             * Format: int64
             * @description Announces accepted since the start.
             */
            announces: number;
            /** @description Bytes downloaded since the start, likewise. */
            downloaded: string;
            /**
             * Format: int64
             * @description Peers on all torrents.
             */
            peers: number;
            /**
             * Format: int64
             * @description Requests refused since the start, for any reason.
             */
            refused: number;
            /**
             * Format: int64
             * @description Torrents scraped since the start.
             */
            scrapes: number;
            /** @description Bytes uploaded since the start, as credited to raw accounts. */
            uploaded: string;
        };
        /** @description Bytes that were credited. */
        Transferred: {
            /** @description Bytes downloaded, as they are. */
            downloaded: string;
            /** @description Bytes uploaded, as they are. */
            uploaded: string;
        };
        /** @description What to change about a torrent. What is left out stays. */
        UpdateTorrent: {
            /** @description Whether it is open to all, or awaits approval. */
            approved?: boolean | null;
            /** @description Whether it may be announced. */
            enabled?: boolean | null;
            /**
             * Format: int64
             * @description How many peers may leech it at once: a number, -1 for any number, null for the configured default. Who leeches
             *     it already goes on.
             */
            leech_slots?: number | null;
        };
        /** @description What to change about a user. What is left out stays. */
        UpdateUser: {
            /** @description Whether they may announce. */
            enabled?: boolean | null;
            /**
             * Format: int64
             * @description How many torrents they may leech at once: a number, -1 for any number, null for the configured default. Who
             *     leeches more already goes on.
             */
            leech_slots?: number | null;
            /** @description The display name, without control characters; null removes it. */
            name?: string | null;
        };
        /** @description What to change about a view. */
        UpdateView: {
            /** @description Whether its entries wait in the journal. */
            paused: boolean;
        };
        /** @description A user. */
        User: {
            /**
             * Format: int32
             * @description When they were added.
             */
            created_at: number;
            /** @description Whether they may announce. */
            enabled: boolean;
            /**
             * Format: int64
             * @description Their number.
             */
            id: number;
            /**
             * Format: int64
             * @description How many torrents they may leech at once: a number, -1 for any number, null for the configured default.
             */
            leech_slots?: number | null;
            /** @description The display name; null if there is none. */
            name?: string | null;
            /** @description Their passkey; only for keys with `admin`. */
            passkey?: string | null;
            /** @description Whether they are known only by a passkey that the whitelist or the site's verify endpoint vouches for. */
            vouched: boolean;
        };
        /** @description A user, and what they moved. */
        UserDetails: {
            figures?: components["schemas"]["Figures"] | null;
            /**
             * Format: int64
             * @description How many torrents they leech right now.
             */
            leeching: number;
            /**
             * Format: int64
             * @description How many torrents they seed right now.
             */
            seeding: number;
            /** @description The user. */
            user: components["schemas"]["User"];
        };
        /**
         * Format: int64
         * @description The number of a user.
         */
        UserId: number;
        UserIdOrString: number | string;
        /** @description A page of users. */
        UserPage: {
            /** @description What is on this page. */
            items: components["schemas"]["ListedUser"][];
            /** @description Where the next page begins; null if this is the last. */
            next?: string | null;
            /**
             * Format: int64
             * @description How many there are on all pages; null for a search by number.
             */
            total?: number | null;
        };
        /** @description Somebody's sessions. */
        UserSessions: {
            /** @description Devices at other gateways, which know more about them. */
            elsewhere: components["schemas"]["RemoteDevice"][];
            /** @description One for each connection, and for each device that sends heartbeats over HTTP. */
            sessions: components["schemas"]["Session"][];
        };
        /** @description People by status. */
        UsersByStatus: {
            /** Format: int32 */
            away: number;
            /** Format: int32 */
            busy: number;
            /**
             * Format: int32
             * @description Hidden: to others they are offline. Null to keys without `admin`: beside who comes and goes it would tell who hides.
             */
            invisible?: number | null;
            /** Format: int32 */
            online: number;
            /**
             * Format: int32
             * @description Were here before a restart, and have a while to come back.
             */
            pending: number;
        };
        /** @description Whether a passkey may announce. */
        VerifyReply: {
            /** @description Whether it may. */
            valid: boolean;
        };
        /** @description How far a view is. */
        ViewOverview: {
            /**
             * Format: double
             * @description How old the oldest of them is, in seconds.
             */
            behind_s: number;
            /** @description The group in which it reads the journal. */
            group: string;
            /**
             * Format: int64
             * @description Entries that it does not show yet.
             */
            lag: number;
            /** @description Whether an operator has paused it. */
            paused: boolean;
            /**
             * Format: double
             * @description Entries that it took, a second.
             */
            rate_per_s: number;
            /**
             * @description The view.
             * @example ledger
             */
            view: string;
        };
        /** @description What a view does. */
        ViewStatus: {
            /** @description Whether its entries wait in the journal. */
            paused: boolean;
            /** @description The view. */
            view: string;
        };
        /** @description What became of passkeys. */
        WhitelistChanged: {
            /**
             * Format: int64
             * @description How many of them were not as asked before.
             */
            changed: number;
        };
        /** @description Which passkeys are on the whitelist. */
        WhitelistChecked: {
            /** @description Whether each is, in the order asked. */
            listed: boolean[];
        };
        /** @description Some passkeys. */
        WhitelistPasskeys: {
            /** @description 1 to 10000 of them: 8 to 64 hexadecimal digits each; upper case is taken as lower case. */
            passkeys: components["schemas"]["Passkey"][];
        };
        /** @description What replaced what. */
        WhitelistReplaced: {
            /**
             * Format: int64
             * @description How many there are.
             */
            after: number;
            /**
             * Format: int64
             * @description How many passkeys there were.
             */
            before: number;
        };
        /** @description How long the whitelist is. */
        WhitelistSize: {
            /**
             * Format: int64
             * @description How many passkeys it has.
             */
            count: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
