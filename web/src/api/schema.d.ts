// Made from openapi.json by `npm run api`. Do not edit.

export interface paths {
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List audit records */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: number;
                    /** @description Only this action, such as `user.add`; with a trailing dot, all actions with this prefix. */
                    action?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, newest first; may be short while `next` is not null */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditRecordPage"];
                    };
                };
                /** @description Error */
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
         * Verify the audit trail
         * @description Reads the whole trail; concurrent requests share one read.
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
                /** @description The result */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditVerification"];
                    };
                };
                /** @description Error */
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
         * List client rules
         * @description If any prefix is allowed, all other clients are refused. The longest matching prefix applies.
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
                /** @description All rules */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ClientRulePage"];
                    };
                };
                /** @description Error */
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
        /** Allow or forbid clients with a prefix */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Peer id prefix, such as `-TR3` */
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
                /** @description The rule */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ClientRule"];
                    };
                };
                /** @description Error */
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
        /** Remove a client rule */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Peer id prefix, such as `-TR3` */
                    prefix: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Removed */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Error */
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
         * Import friendships
         * @description All or none. Idempotent.
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
                /** @description Number of new and existing friendships */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ImportFriendsReply"];
                    };
                };
                /** @description Error */
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
        /** Get the state of the journal */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The journal and its consumer groups */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JournalStatus"];
                    };
                };
                /** @description Error */
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
        /** Pause or resume a view; returns when every process has confirmed */
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
                /** @description The view */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ViewStatus"];
                    };
                };
                /** @description Error */
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
        /** List keys */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                    /** @description Include revoked keys. */
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
                /** @description Error */
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
         * Create a key
         * @description The secret is returned only in this response.
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
                /** @description The key with its secret */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CreatedKey"];
                    };
                };
                /** @description Error */
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
         * Revoke a key
         * @description Takes effect within a second, also for sessions started with the key. The key of this request is revoked only with
         *     `force=true`, so that one with `admin` remains.
         */
        delete: {
            parameters: {
                query?: {
                    /** @description Allow to revoke the key of this request. */
                    force?: boolean;
                };
                header?: never;
                path: {
                    /** @description Key id */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Revoked */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description It is the key of this request */
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description Error */
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
        /** List dead letters or failed entries */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description `dlq` (will be retried) or `failed` (after the last retry) */
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
                /** @description Error */
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
        /** Delete entries */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `dlq` (will be retried) or `failed` (after the last retry) */
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
                /** @description Number of entries */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeadLetterCount"];
                    };
                };
                /** @description Error */
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
        /** Retry entries now */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `dlq` (will be retried) or `failed` (after the last retry) */
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
                /** @description Number of entries */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeadLetterCount"];
                    };
                };
                /** @description Error */
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
        /** Get a dead letter or failed entry */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `dlq` (will be retried) or `failed` (after the last retry) */
                    lane: string;
                    /** @description Entry id */
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
                /** @description Error */
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
         * Get a member's own data
         * @description Takes the user's token, as for a connection; not an API key.
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
                /** @description The member, also before the first announce */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Me"];
                    };
                };
                /** @description Error */
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
        /** List multipliers: past, current and future */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description All multipliers, sorted by id */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MultiplierPage"];
                    };
                };
                /** @description Error */
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
        /** Add a multiplier */
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
                /** @description Error */
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
        /** End a multiplier; credited bytes stay, and it remains listed */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Multiplier id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Removed */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Error */
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
         * Get the overview
         * @description Computed once a second by this process; rates are averages over five seconds. Online users are counted over all
         *     gateways, everything else is of this process. The number of invisible users needs `admin`.
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
                /** @description State of the last second */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Overview"];
                    };
                };
                /** @description Error */
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
         * Get the history of the last hour
         * @description One point per ten seconds, since the start of this process.
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
                /** @description Oldest point first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OverviewHistory"];
                    };
                };
                /** @description Error */
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
         * List banned ports
         * @description An announce with one of these ports is refused.
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
                /** @description All ranges, sorted by port */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BannedPortsPage"];
                    };
                };
                /** @description Error */
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
        /** Ban ports; peers on them are evicted */
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
                /** @description The banned range */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BannedPorts"];
                    };
                };
                /** @description Error */
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
        /** Allow ports; a larger banned range is split */
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
                /** @description Removed */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Error */
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
         * Count online users over all gateways
         * @description Counts that include invisible users need `admin`.
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
                /** @description Counts by status and platform */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PresenceCount"];
                    };
                };
                /** @description Error */
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
         * Send a heartbeat of a device without a WebSocket
         * @description Takes the user's token, as for a connection; not an API key.
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
                /** @description Accepted */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HeartbeatReply"];
                    };
                };
                /** @description Error */
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
        /** Query the public presence of many users */
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
                /** @description In the order of the request */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PresencePage"];
                    };
                };
                /** @description Error */
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
        /** Get the public presence of a user */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The presence; offline if the user was never online */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Presence"];
                    };
                };
                /** @description Error */
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
         * List risk events
         * @description Newest first. With `kind`, each request scans a bounded number of events: a page may be short or empty. Continue until
         *     `next` is null.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                    /** @description Only this kind. */
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
                /** @description Error */
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
         * List the staff queue
         * @description Newest first: risk events, hit-and-runs, torrents that await approval, dead letters and failed entries. Hit-and-runs
         *     are updated every few minutes on a large site, more often on a small one.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                    /** @description Only this kind. */
                    kind?: "risk" | "hit_and_run" | "approval" | "dead_letter" | "failed_entry";
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
                        "application/json": components["schemas"]["QueuePage"];
                    };
                };
                /** @description Error */
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
        /** Get totals of this process */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The totals */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Stats"];
                    };
                };
                /** @description Error */
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
         * List torrents with their swarms
         * @description Pages of one ranking are consistent: counts are those of the first page, for about five minutes.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Sort key. Ties are broken by id. */
                    sort?: "seeders" | "leechers" | "snatches" | "size" | "added";
                    /** @description Sort order. */
                    order?: "desc" | "asc";
                    /** @description Only torrents whose name contains this text, ignoring case; whose infohash begins with these four or more hexadecimal digits; or with this id. */
                    search?: string;
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SwarmPage"];
                    };
                };
                /** @description Error */
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
        /** List torrents */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, sorted by id */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TorrentPage"];
                    };
                };
                /** @description Error */
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
        /** Add a torrent */
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
                /** @description Error */
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
         * Add a torrent from a `.torrent` file
         * @description Name, size and infohashes are read from the file. At most 32 MiB.
         */
        post: {
            parameters: {
                query?: {
                    /** @description False if the torrent awaits approval. */
                    approved?: boolean;
                    /**
                     * @description Whether to accept a torrent without the private flag. Clients also find its peers by DHT and PEX, and that traffic
                     *     is not counted.
                     */
                    allow_public?: boolean;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            /** @description The file */
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
                /** @description Error */
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
        /** Get a torrent */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Torrent id or infohash */
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
                /** @description Error */
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
        /** Remove a torrent; accounts are kept */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Torrent id or infohash */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Removed */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Error */
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
        /** Update a torrent */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Torrent id or infohash */
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
                /** @description Error */
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
         * List the accounts on a torrent
         * @description Latest announce first. Every announce moves an account to the front, so an account that announces while pages are read
         *     may be missing from the following pages; read the first page again to find it.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Torrent id or infohash */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, latest announce first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TorrentAccountPage"];
                    };
                };
                /** @description Error */
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
        /** List the peers of a torrent */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Torrent id or infohash */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, sorted by user id; with addresses for keys with `admin` */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PeerPage"];
                    };
                };
                /** @description Error */
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
         * List users
         * @description Sorted by id by default. Other orders and states lag by a few seconds; the figures on a page are current.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Sort key; amounts are credited bytes. Users without a value come last; ties are broken by id. */
                    sort?: "id" | "uploaded" | "downloaded" | "ratio" | "last_announce" | "seeding" | "leeching";
                    /** @description Default: `asc` for `id`, otherwise `desc`. */
                    order?: "asc" | "desc";
                    /** @description Only users in this state. `online` needs a process with the role "gateway" and covers its own connections. */
                    state?: "enabled" | "disabled" | "seeding" | "leeching" | "online" | "hit_and_run" | "never_announced";
                    /** @description Only users whose name contains this text, ignoring case, who have this id or, for keys with `admin`, this complete passkey. */
                    search?: string;
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UserPage"];
                    };
                };
                /** @description Error */
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
        /** Add a user */
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
                /** @description Error */
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
        /** Look up users by passkey */
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
                /** @description In the order of the request */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PasskeyHolderPage"];
                    };
                };
                /** @description Error */
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
        /** Get a user */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
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
                /** @description Error */
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
        /** Remove a user; accounts are kept */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Removed */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Error */
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
        /** Update a user */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
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
                /** @description Error */
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
        /** List a user's sessions with their last heartbeats */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Also of invisible users; empty if offline */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UserSessions"];
                    };
                };
                /** @description Error */
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
         * Disconnect a user
         * @description All devices, or one, at every gateway. Unless `reconnect` is true, clients do not reconnect automatically; a token that
         *     is still valid is accepted again.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
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
                /** @description Number of sessions */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DisconnectReply"];
                    };
                };
                /** @description Error */
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
         * List the journal entries of a user
         * @description Newest first, as far back as the journal reaches. Each request scans a bounded number of entries: a page may be short
         *     or empty. Continue until `next` is null.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                    /** @description Only entries of this torrent id. */
                    torrent?: number;
                };
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page; with addresses for keys with `admin` */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["EntryPage"];
                    };
                };
                /** @description Error */
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
         * List a user's friends
         * @description Empty for an unknown user.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, sorted by user id */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FriendPage"];
                    };
                };
                /** @description Error */
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
         * Make two users friends
         * @description Idempotent. Connected clients are updated within a second.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                    /** @description User id */
                    other: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The users are friends */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Error */
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
        /** End a friendship */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                    /** @description User id */
                    other: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Removed */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Error */
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
        /** List a user's hit-and-runs and torrents with seeding time owed */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, sorted by torrent id; may be short or empty while `next` is not null */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HitAndRunPage"];
                    };
                };
                /** @description Error */
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
        /** List the torrents that a user leeches */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, latest announce first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActiveTorrentPage"];
                    };
                };
                /** @description Error */
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
        /** Replace a user's passkey; the old one stops working */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
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
                /** @description Error */
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
        /** List the presence events of a user */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, newest first, of the last presence.history_days */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PresenceEventPage"];
                    };
                };
                /** @description Error */
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
         * Get a user's privacy settings
         * @description Default: `presence.default_visibility`.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The settings */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Privacy"];
                    };
                };
                /** @description Error */
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
         * Set a user's privacy settings
         * @description Replaces all settings. Connected clients are updated within a second.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
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
                /** @description The settings */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Privacy"];
                    };
                };
                /** @description Error */
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
         * List the risk events of a user
         * @description Newest first. Each request scans a bounded number of events: a page may be short or empty. Continue until `next` is
         *     null.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                    /** @description Only this kind. */
                    kind?: "client_rate" | "user_rate" | "upload_without_leechers" | "upload_after_stop" | "upload_ahead_of_download" | "left_without_download" | "completed_without_download" | "shared_address" | "many_peer_ids";
                };
                header?: never;
                path: {
                    /** @description User id */
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
                /** @description Error */
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
        /** List the torrents that a user seeds */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, latest announce first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActiveTorrentPage"];
                    };
                };
                /** @description Error */
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
        /** List a user's accounts */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items. */
                    limit?: number;
                    /** @description `next` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page, sorted by torrent id */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AccountPage"];
                    };
                };
                /** @description Error */
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
         * Explain a user's account on a torrent by client
         * @description Computed from client counters, independent of how far back the journal reaches.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description User id */
                    id: number;
                    /** @description Torrent id */
                    torrent: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The account and its clients, latest announce first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AccountClients"];
                    };
                };
                /** @description Error */
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
        /** Get the size of the whitelist */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The size */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistSize"];
                    };
                };
                /** @description Error */
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
         * Replace the whitelist
         * @description One passkey per line; empty lines and lines that begin with `#` are ignored. The new list replaces the old one
         *     atomically at the end of the upload. After a malformed line or an incomplete body nothing changes.
         */
        put: {
            parameters: {
                query?: {
                    /** @description Whether an upload without passkeys may empty the whitelist. */
                    allow_empty?: boolean;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            /** @description One passkey per line */
            requestBody?: {
                content: {
                    "text/plain": string | null;
                };
            };
            responses: {
                /** @description Sizes before and after */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistReplaced"];
                    };
                };
                /** @description Error */
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
        /** Add passkeys to the whitelist */
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
                /** @description Number of new passkeys */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistChanged"];
                    };
                };
                /** @description Error */
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
        /** Check passkeys against the whitelist */
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
                /** @description In the order of the request */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistChecked"];
                    };
                };
                /** @description Error */
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
         * Remove passkeys from the whitelist
         * @description Takes effect on every tracker within a second; their peers are evicted.
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
                /** @description Number of removed passkeys */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistChanged"];
                    };
                };
                /** @description Error */
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
        /** Undo the last refresh */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Sizes before and after */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WhitelistReplaced"];
                    };
                };
                /** @description Error */
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
         * Check liveness
         * @description Checks no dependency: restart a server that does not answer.
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
                /** @description The server is running */
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
         * Get metrics
         * @description Needs a key with `read`, unless `site.metrics_open` is set.
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
                /** @description Prometheus text format */
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
         * Verify a passkey
         * @description For other trackers, such as Chihaya, when they see an unknown passkey.
         */
        get: {
            parameters: {
                query: {
                    /** @description 8 to 64 hexadecimal digits; case is ignored. */
                    passkey: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The result */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["VerifyReply"];
                    };
                };
                /** @description Missing or malformed passkey */
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
                /** @description Error */
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
         * Check readiness
         * @description State of each dependency; with a key for `read`, also the errors. Announces are answered from memory even if a
         *     dependency fails.
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
                /** @description All dependencies work */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Readiness"];
                    };
                };
                /** @description A dependency fails */
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
        /** Get the session */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The session */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OperatorSession"];
                    };
                };
                /** @description Not signed in */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description Error */
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
         * Sign in
         * @description For the dashboard: exchanges a key with `read` or `admin` for a cookie. Programs send the key with each request.
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
                /** @description Error */
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
        /** Sign out */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Signed out; the cookie is removed */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Not signed in */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description Error */
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
                /** @description Error */
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
        /** @description A user's account on a torrent. */
        Account: {
            /** @description Client of the latest announce, such as `-TR3000-`. */
            client: string;
            /**
             * Format: int32
             * @description Time of the first completion.
             */
            completed_at?: number | null;
            figures: components["schemas"]["Figures"];
            /** @description Null if the torrent was removed. */
            infohash?: string | null;
            /** @description Whether the user leeches the torrent now. */
            leeching: boolean;
            /** @description `left` of the latest announce; null if the client did not send it. */
            left?: string | null;
            /** @description Null if the torrent was removed. */
            name?: string | null;
            /** @description Whether the user seeds the torrent now. */
            seeding: boolean;
            /**
             * Format: int64
             * @description Torrent id.
             */
            torrent: number;
        };
        /** @description A client's share of an account. */
        AccountClient: {
            /** @description Total: stretches, bridged growth, `settled` and `foreign`, minus `withheld`. */
            brought: components["schemas"]["Transferred"];
            /** @description From entries of other producers, which have no counters. */
            foreign: components["schemas"]["Transferred"];
            /**
             * @description `client_id` of entries.
             * @example 0123456789abcdef
             */
            id: string;
            /**
             * Format: int32
             * @description Time of the last announce.
             */
            last_seen: number;
            /** @description Sum of earlier stretches that are no longer kept one by one. */
            settled: components["schemas"]["Transferred"];
            /**
             * @description `seeding`, `leeching` or `gone`.
             * @example seeding
             */
            state: string;
            /** @description Oldest first. */
            stretches: components["schemas"]["Stretch"][];
            /** @description Not credited: all clients of the user together exceeded the user's rate ceiling. */
            withheld: components["schemas"]["Transferred"];
        };
        /** @description An account by client. Clients and rest add up to the account exactly. */
        AccountClients: {
            account?: components["schemas"]["Account"] | null;
            /** @description Up to 100, latest announce first. */
            clients: components["schemas"]["AccountClient"][];
            /** @description Whether all clients are listed. If not, the others are in `rest`. */
            complete: boolean;
            /**
             * @description Clients that are not listed or no longer kept. Credits under an earlier rate ceiling are included and may make it
             *     negative.
             */
            rest: components["schemas"]["Transferred"];
        };
        /** @description A page of a collection. */
        AccountPage: {
            items: {
                /** @description Client of the latest announce, such as `-TR3000-`. */
                client: string;
                /**
                 * Format: int32
                 * @description Time of the first completion.
                 */
                completed_at?: number | null;
                figures: components["schemas"]["Figures"];
                /** @description Null if the torrent was removed. */
                infohash?: string | null;
                /** @description Whether the user leeches the torrent now. */
                leeching: boolean;
                /** @description `left` of the latest announce; null if the client did not send it. */
                left?: string | null;
                /** @description Null if the torrent was removed. */
                name?: string | null;
                /** @description Whether the user seeds the torrent now. */
                seeding: boolean;
                /**
                 * Format: int64
                 * @description Torrent id.
                 */
                torrent: number;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description A torrent that a user seeds or leeches now. */
        ActiveTorrent: {
            /** @example 0123456789abcdef0123456789abcdef01234567 */
            infohash: string;
            /**
             * Format: int32
             * @description Time of the last announce.
             */
            last_announce: number;
            /** @description Null if the torrent was removed. */
            name?: string | null;
            /**
             * Format: int64
             * @description Torrent id; null if the torrent was removed.
             */
            torrent?: number | null;
        };
        /** @description Torrents that a user seeds or leeches, latest announce first. */
        ActiveTorrentPage: {
            /**
             * Format: int64
             * @description Torrents on all pages.
             */
            count: number;
            items: components["schemas"]["ActiveTorrent"][];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        Alert: {
            /** @description Dependencies and views that fail because of it, by name. They have no alerts of their own. */
            affected: string[];
            /**
             * @description Stable code for programs.
             * @example view_paused
             */
            code: string;
            /** @description Problem and remedy. */
            detail: string;
            severity: components["schemas"]["Severity"];
            /**
             * Format: int32
             * @description Unix seconds.
             */
            since: number;
            /**
             * @description The view or dependency; null if the code has no subject.
             * @example ledger
             */
            subject?: string | null;
        };
        /** @enum {string} */
        AppState: "foreground" | "background" | "inactive";
        /**
         * @description Who may see something of a user.
         * @enum {string}
         */
        Audience: "everyone" | "friends" | "nobody";
        /** @description A record of the audit trail, as in its file. */
        AuditRecord: {
            /** @example passkey.add */
            action: string;
            /** @example key:1a2b3c4d */
            actorId: string;
            /** @example 2026-11-15T12:00:00.000Z */
            at: string;
            details: Record<string, never>;
            /** @description Hash of this record. */
            hash: string;
            /** @description Hash of the previous record. */
            prev: string;
            /** @example ok */
            result: string;
            /**
             * Format: int64
             * @description Sequence number.
             */
            seq: number;
            /** @description A passkey appears as its first digits and a hash. */
            subjectId: string;
            subjectType: string;
        };
        /** @description A page of a collection. */
        AuditRecordPage: {
            items: {
                /** @example passkey.add */
                action: string;
                /** @example key:1a2b3c4d */
                actorId: string;
                /** @example 2026-11-15T12:00:00.000Z */
                at: string;
                details: Record<string, never>;
                /** @description Hash of this record. */
                hash: string;
                /** @description Hash of the previous record. */
                prev: string;
                /** @example ok */
                result: string;
                /**
                 * Format: int64
                 * @description Sequence number.
                 */
                seq: number;
                /** @description A passkey appears as its first digits and a hash. */
                subjectId: string;
                subjectType: string;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description Result of checking the hash chain. */
        AuditVerification: {
            /**
             * Format: int64
             * @description Sequence number in the anchor file: no record up to it is missing if the chain is intact. Later records are very
             *     recent, or the anchor could not be written; null without an anchor.
             */
            anchored?: number | null;
            /**
             * Format: int64
             * @description Sequence number of the first missing or altered record; null if the chain is intact.
             */
            broken_at?: number | null;
            /** @description Whether the chain is intact. */
            holds: boolean;
            /**
             * Format: int64
             * @description Sequence number of the last intact record; null if there is none.
             */
            last?: number | null;
            /** @description Hash of that record. Keep a copy elsewhere to detect a trail that was truncated together with its anchor. */
            last_hash?: string | null;
            /** @description The fault; null if the chain is intact. */
            reason?: string | null;
            /**
             * Format: int64
             * @description Intact records, up to the first fault.
             */
            records: number;
            /**
             * Format: int64
             * @description Incomplete lines after a crash or on a full disk, each noted by the record that follows.
             */
            torn: number;
        };
        BanPorts: {
            /** @description For staff; not sent to clients. */
            reason?: string;
        };
        /** @description A range of banned ports. */
        BannedPorts: {
            /** Format: int32 */
            first: number;
            /**
             * Format: int32
             * @description Inclusive.
             */
            last: number;
            reason: string;
        };
        /** @description A page of a collection. */
        BannedPortsPage: {
            items: {
                /** Format: int32 */
                first: number;
                /**
                 * Format: int32
                 * @description Inclusive.
                 */
                last: number;
                reason: string;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description Growth of a client's counters while no tracker received its announces. */
        BridgedTransfer: {
            /** @description Downloaded bytes that are credited. */
            downloaded: string;
            /** @description Uploaded bytes that are credited. */
            uploaded: string;
            /** @description Downloaded bytes above the rate ceiling, not credited. */
            withheld_downloaded: string;
            /** @description Uploaded bytes above the rate ceiling, not credited. */
            withheld_uploaded: string;
        };
        /** @description A rule for all clients with a peer id prefix. */
        ClientRule: {
            /** @description Whether announces are accepted. */
            allowed: boolean;
            name: string;
            /** @description Peer id prefix, such as `-TR3`; `hex:` and digits if it is not printable ASCII. */
            prefix: string;
        };
        /** @description A page of a collection. */
        ClientRulePage: {
            items: {
                /** @description Whether announces are accepted. */
                allowed: boolean;
                name: string;
                /** @description Peer id prefix, such as `-TR3`; `hex:` and digits if it is not printable ASCII. */
                prefix: string;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
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
        CreateKey: {
            /** @description Who or what uses the key. */
            name: string;
            scopes: components["schemas"]["Scope"][];
        };
        /** @description `ends_at` must be after `starts_at`. */
        CreateMultiplier: {
            /**
             * Format: int32
             * @description Share of downloaded bytes that is credited. 0 is freeleech.
             * @default 100
             */
            download_percent: number | null;
            /**
             * Format: int64
             * @description Default: until it is removed.
             */
            ends_at?: number | null;
            note?: string;
            /**
             * @description What it applies to.
             * @enum {string}
             */
            scope: "site";
            /**
             * Format: int64
             * @description Default: now.
             */
            starts_at?: number | null;
            /**
             * @description Torrent or user id.
             * @enum {integer|null}
             */
            subject?: 0 | null;
            /**
             * Format: int32
             * @description Share of uploaded bytes that is credited.
             * @default 100
             */
            upload_percent: number | null;
        } | {
            /**
             * Format: int32
             * @description Share of downloaded bytes that is credited. 0 is freeleech.
             * @default 100
             */
            download_percent: number | null;
            /**
             * Format: int64
             * @description Default: until it is removed.
             */
            ends_at?: number | null;
            note?: string;
            /**
             * @description What it applies to.
             * @enum {string}
             */
            scope: "torrent" | "user";
            /**
             * Format: int64
             * @description Default: now.
             */
            starts_at?: number | null;
            /** @description Torrent or user id. */
            subject: number;
            /**
             * Format: int32
             * @description Share of uploaded bytes that is credited.
             * @default 100
             */
            upload_percent: number | null;
        };
        CreateTorrent: {
            /** @description False if the torrent awaits approval. Default: true. */
            approved?: boolean | null;
            /**
             * Format: int64
             * @description Default: the next free id.
             */
            id?: number | null;
            /** @description 40 hexadecimal digits. */
            infohash: string;
            /** @description For a hybrid torrent: the first 40 digits of the v2 infohash. */
            infohash_v2?: string | null;
            name: string;
            /** @description Size of the content, in decimal digits. */
            total_bytes?: string | null;
        };
        CreateUser: {
            /**
             * Format: int64
             * @description Default: the next free id.
             */
            id?: number | null;
            /** @description Display name; null for none. */
            name?: string | null;
            /** @description Default: random. */
            passkey?: string | null;
        };
        /** @description A new key with its secret. */
        CreatedKey: {
            /** Format: int32 */
            created_at: number;
            /** @description The part of the key after `rck_`. */
            id: string;
            /**
             * @description The complete key. Returned only here.
             * @example rck_1a2b3c4d_0123456789abcdef0123456789abcdef01234567
             */
            key: string;
            name: string;
            scopes: components["schemas"]["Scope"][];
        };
        /** @description An entry that a view rejected. */
        DeadLetter: {
            /**
             * Format: int32
             * @description Time of the next retry.
             */
            due_at: number;
            /**
             * Format: int32
             * @description Time of the last failure.
             */
            failed_at: number;
            /** @description Fields of the entry; passkeys are shortened, addresses need `admin`. */
            fields: {
                [key: string]: string;
            };
            /** @description Consumer group of the view. */
            group: string;
            /**
             * @description Entry id in this lane.
             * @example 1794742234000-0
             */
            id: string;
            /** @description Id of the rejected entry in the traffic lane. */
            origin: string;
            /** @description Why the view rejected it. */
            reason: string;
            /**
             * Format: int32
             * @description Retries so far.
             */
            retry: number;
        };
        DeadLetterCount: {
            /**
             * Format: int64
             * @description Entries that were found.
             */
            count: number;
        };
        /** @description A page of a collection. */
        DeadLetterPage: {
            items: {
                /**
                 * Format: int32
                 * @description Time of the next retry.
                 */
                due_at: number;
                /**
                 * Format: int32
                 * @description Time of the last failure.
                 */
                failed_at: number;
                /** @description Fields of the entry; passkeys are shortened, addresses need `admin`. */
                fields: {
                    [key: string]: string;
                };
                /** @description Consumer group of the view. */
                group: string;
                /**
                 * @description Entry id in this lane.
                 * @example 1794742234000-0
                 */
                id: string;
                /** @description Id of the rejected entry in the traffic lane. */
                origin: string;
                /** @description Why the view rejected it. */
                reason: string;
                /**
                 * Format: int32
                 * @description Retries so far.
                 */
                retry: number;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description All entries, or up to 1000 by id. */
        DeadLetterSelection: {
            /**
             * @description All entries, instead of `ids`.
             * @enum {boolean}
             */
            all?: false;
            /** @description Up to 1000. */
            ids: string[];
        } | {
            /**
             * @description All entries, instead of `ids`.
             * @enum {boolean}
             */
            all: true;
            /** @description Up to 1000. */
            ids?: string[];
        };
        /** @enum {string} */
        DeclaredStatus: "online" | "away" | "busy" | "invisible";
        DependencyHealth: {
            /**
             * @description Name of the dependency.
             * @example database
             */
            name: string;
            /**
             * @description The dependency that this one depends on; null if none.
             * @example null
             */
            needs?: string | null;
            /** @description The error; only for keys with `read`. */
            reason?: string | null;
            /**
             * Format: int32
             * @description Start of this state, in unix seconds.
             */
            since: number;
            /**
             * @description `ok`, `failing`, or `unknown` before the first check.
             * @example ok
             */
            state: string;
        };
        Device: {
            /** @description Chosen by the client. */
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
        /** @description Sessions that ended for one cause. */
        DisconnectCause: {
            /** @example dropped */
            cause: string;
            /** Format: int64 */
            count: number;
        };
        DisconnectReply: {
            /** @description Sessions ended at this gateway, plus devices at other gateways that were asked to disconnect. */
            sessions: number;
        };
        DisconnectUser: {
            /** @description Default: all devices. */
            device?: string | null;
            /**
             * @description Whether clients may reconnect automatically.
             * @default false
             */
            reconnect: boolean;
        };
        /** @description An announce, or the expiry or removal of a peer. */
        Entry: {
            /**
             * Format: int32
             * @description Time of the announce.
             */
            at: number;
            /**
             * @description announce, timeout or removal.
             * @example announce
             */
            cause: string;
            /** @description Client prefix, such as `-TR3000-`; empty if the peer id has none. */
            client: string;
            /**
             * @description Id in `GET /api/v1/users/{id}/torrents/{torrent}/clients`.
             * @example 0123456789abcdef
             */
            client_id: string;
            /** @description As `credited_uploaded`. */
            credited_downloaded?: string | null;
            /**
             * @description After multipliers; entries of other producers are limited by the rate ceiling. Null if unknown, because an older
             *     version removed a multiplier.
             */
            credited_uploaded?: string | null;
            /** @description Bytes since the previous announce. */
            downloaded_delta: string;
            /**
             * Format: int32
             * @description Seconds since the previous announce; 0 for the first, null if unknown.
             */
            elapsed_s?: number | null;
            /**
             * @description none, started, completed or stopped.
             * @example started
             */
            event: string;
            /**
             * @description Entry id in the journal.
             * @example 1794742234000-0
             */
            id: string;
            /** @example 0123456789abcdef0123456789abcdef01234567 */
            infohash: string;
            /** @description Only for keys with `admin`. */
            ip?: string | null;
            /** @description Bytes left; null if the client did not send it. */
            left?: string | null;
            /** @description Null if the torrent was removed. */
            name?: string | null;
            /** @description In hexadecimal digits. */
            peer_id: string;
            /**
             * Format: int64
             * @description Torrent id; null if the torrent was removed.
             */
            torrent?: number | null;
            /** @description Bytes since the previous announce. */
            uploaded_delta: string;
        };
        EntryPage: {
            /** @description Whether the journal was read to its beginning. */
            complete: boolean;
            /** @description Newest first. May be short or empty while `next` is not null. */
            items: components["schemas"]["Entry"][];
            /** @description `cursor` of the next page; null if the journal was read to its beginning. */
            next?: string | null;
            /**
             * Format: int64
             * @description Entries scanned for this page.
             */
            scanned: number;
            /**
             * Format: int64
             * @description Time of the oldest entry in the journal, of any user; null if the journal is empty.
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
        /** @description Traffic, times and completions. */
        Figures: {
            /**
             * Format: int64
             * @description First completions.
             */
            completed: number;
            /**
             * Format: int64
             * @description Repeated completions.
             */
            completed_again: number;
            /** @description Bytes after multipliers. */
            credited_downloaded: string;
            /** @description Bytes after multipliers. */
            credited_uploaded: string;
            /**
             * @description Raw bytes.
             * @example 549755813888
             */
            downloaded: string;
            /**
             * Format: int32
             * @description Time of the first announce.
             */
            first_seen?: number | null;
            /**
             * Format: int32
             * @description Time of the last announce.
             */
            last_seen?: number | null;
            /**
             * Format: int64
             * @description As `seeding_s`.
             */
            leeching_s: number;
            /**
             * Format: int64
             * @description Wall-clock seconds per user and torrent; several clients at a time count once.
             */
            seeding_s: number;
            /**
             * @description Raw bytes.
             * @example 1099511627776
             */
            uploaded: string;
        };
        Friend: {
            /** Format: int64 */
            id: number;
            /**
             * Format: int32
             * @description Start of the friendship.
             */
            since: number;
        };
        /** @description A page of a collection. */
        FriendPage: {
            items: {
                /** Format: int64 */
                id: number;
                /**
                 * Format: int32
                 * @description Start of the friendship.
                 */
                since: number;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description Ids of two users, such as `[7, 9]` */
        FriendPair: number[];
        /** @description State of the gateway. */
        GatewayOverview: {
            /**
             * Format: double
             * @description New sessions.
             */
            connects_per_s: number;
            /** @description Ended sessions since the start, by cause. */
            disconnects: components["schemas"]["DisconnectCause"][];
            /**
             * Format: double
             * @description Ended sessions.
             */
            disconnects_per_s: number;
            heartbeat_delay_ms?: components["schemas"]["HeartbeatDelay"] | null;
            /**
             * Format: int64
             * @description Undelivered webhooks.
             */
            webhooks_waiting: number;
        };
        /** @description State of a device. */
        Heartbeat: {
            app_state?: components["schemas"]["AppState"] | null;
            /** @description Device id, stable across heartbeats. */
            device: string;
            /**
             * @description Last heartbeat: the device goes offline at once.
             * @default false
             */
            goodbye: boolean;
            platform?: components["schemas"]["Platform"] | null;
            status?: components["schemas"]["DeclaredStatus"] | null;
        };
        /** @description Quantiles in milliseconds. */
        HeartbeatDelay: {
            /**
             * Format: double
             * @description Median.
             */
            p50: number;
            /** @description Whether the median exceeds `p50`, which is then the upper bound of the measurement. */
            p50_exceeds: boolean;
            /**
             * Format: double
             * @description 99th percentile.
             */
            p99: number;
            /** @description As `p50_exceeds`, for `p99`. */
            p99_exceeds: boolean;
        };
        HeartbeatReply: {
            /**
             * Format: int32
             * @description Seconds until the next heartbeat; null after a goodbye.
             */
            next_s?: number | null;
        };
        /** @description State at one time. Rates are averages over the step before it. */
        HistoryPoint: {
            /**
             * Format: double
             * @description Accepted announces.
             */
            announces_per_s?: number | null;
            /**
             * Format: int32
             * @description Unix seconds.
             */
            at: number;
            /**
             * Format: double
             * @description New sessions at the gateway.
             */
            connects_per_s?: number | null;
            /**
             * Format: double
             * @description Ended sessions at the gateway.
             */
            disconnects_per_s?: number | null;
            /** Format: double */
            download_bytes_per_s?: number | null;
            /** @description Lag of each view in entries; empty while the journal is unavailable. */
            lag: {
                [key: string]: number;
            };
            /** Format: int64 */
            leechers?: number | null;
            /**
             * Format: int32
             * @description Online users that are not invisible; null without a gateway.
             */
            online?: number | null;
            /**
             * Format: int64
             * @description Null without a tracker.
             */
            seeders?: number | null;
            /** Format: double */
            upload_bytes_per_s?: number | null;
        };
        /** @description A hit-and-run, or an account with seeding time owed. */
        HitAndRun: {
            account: components["schemas"]["Account"];
            /**
             * Format: int32
             * @description End of the activity; null while active.
             */
            gone_since?: number | null;
            /**
             * Format: int64
             * @description Seconds of activity still owed; null for a hit-and-run.
             */
            seeding_s_left?: number | null;
            /**
             * @description `owing` (active, but not for long enough yet) or `hit_and_run` (no longer active).
             * @example owing
             */
            standing: string;
        };
        /** @description A page of a collection. */
        HitAndRunPage: {
            items: {
                account: components["schemas"]["Account"];
                /**
                 * Format: int32
                 * @description End of the activity; null while active.
                 */
                gone_since?: number | null;
                /**
                 * Format: int64
                 * @description Seconds of activity still owed; null for a hit-and-run.
                 */
                seeding_s_left?: number | null;
                /**
                 * @description `owing` (active, but not for long enough yet) or `hit_and_run` (no longer active).
                 * @example owing
                 */
                standing: string;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description Friendships to import. */
        ImportFriends: {
            /** @description Up to 10000. */
            pairs: components["schemas"]["FriendPair"][];
        };
        ImportFriendsReply: {
            /**
             * Format: int64
             * @description New friendships.
             */
            added: number;
            /**
             * Format: int64
             * @description Pairs that were friends already, and duplicates.
             */
            already: number;
        };
        /** @description A consumer group of the journal. */
        JournalGroup: {
            /**
             * Format: double
             * @description Age of the oldest of them, in seconds.
             */
            behind_s: number;
            /** Format: int64 */
            consumers: number;
            group: string;
            /**
             * Format: int64
             * @description Entries that are not acknowledged: `unread` plus `pending`.
             */
            lag: number;
            /** @description Whether an operator paused the view. */
            paused: boolean;
            /**
             * Format: int64
             * @description Entries delivered and not acknowledged.
             */
            pending: number;
            /**
             * Format: int64
             * @description Entries not delivered yet.
             */
            unread: number;
            /** @description Null for a group of another program. */
            view?: string | null;
        };
        /** @description State of the journal. */
        JournalOverview: {
            /** Format: int64 */
            appended: number;
            /** Format: double */
            appended_per_s: number;
            /**
             * Format: int64
             * @description Dead letters.
             */
            dlq: number;
            /**
             * Format: int64
             * @description Entries in the journal.
             */
            entries: number;
            /**
             * Format: int64
             * @description Dead letters after their last retry.
             */
            failed: number;
            /** Format: int64 */
            risks: number;
            /** @description Whether `entries` exceeds `journal.length_alarm`. */
            too_long: boolean;
            views: components["schemas"]["ViewOverview"][];
        };
        JournalStatus: {
            /** Format: int64 */
            appended: number;
            /**
             * Format: int64
             * @description Dead letters.
             */
            dlq: number;
            /**
             * Format: int64
             * @description Entries in the journal.
             */
            entries: number;
            /**
             * Format: int64
             * @description Dead letters after their last retry.
             */
            failed: number;
            groups: components["schemas"]["JournalGroup"][];
            /** Format: int64 */
            risks: number;
            /** @description Whether `entries` exceeds `journal.length_alarm`. */
            too_long: boolean;
        };
        Key: {
            /** Format: int32 */
            created_at: number;
            /**
             * @description The part of the key after `rck_`.
             * @example 1a2b3c4d
             */
            id: string;
            /**
             * Format: int32
             * @description To the minute; null if never used.
             */
            last_used_at?: number | null;
            name: string;
            /**
             * Format: int32
             * @description Null if the key is valid.
             */
            revoked_at?: number | null;
            scopes: components["schemas"]["Scope"][];
        };
        /** @description A page of a collection. */
        KeyPage: {
            items: {
                /** Format: int32 */
                created_at: number;
                /**
                 * @description The part of the key after `rck_`.
                 * @example 1a2b3c4d
                 */
                id: string;
                /**
                 * Format: int32
                 * @description To the minute; null if never used.
                 */
                last_used_at?: number | null;
                name: string;
                /**
                 * Format: int32
                 * @description Null if the key is valid.
                 */
                revoked_at?: number | null;
                scopes: components["schemas"]["Scope"][];
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description A torrent with the counts of its swarm. */
        ListedSwarm: {
            /**
             * Format: int32
             * @description Null if this process has no counts.
             */
            leechers?: number | null;
            /**
             * Format: int32
             * @description Null if this process has no counts.
             */
            seeders?: number | null;
            /**
             * Format: int32
             * @description Completions; null if this process has no counts.
             */
            snatches?: number | null;
            torrent: components["schemas"]["TorrentSummary"];
        };
        /** @description A user with traffic and activity. */
        ListedUser: components["schemas"]["User"] & {
            figures?: components["schemas"]["Figures"] | null;
            /**
             * Format: int64
             * @description Torrents that the user leeches now; null while the activity lists are unavailable.
             */
            leeching?: number | null;
            /**
             * Format: double
             * @description Credited upload divided by credited download; null if nothing was downloaded.
             * @example 1.5
             */
            ratio?: number | null;
            /**
             * Format: int64
             * @description Torrents that the user seeds now; null while the activity lists are unavailable.
             */
            seeding?: number | null;
        };
        /** @description Liveness of the server. */
        Liveness: {
            /**
             * @description Always `alive`.
             * @example alive
             */
            state: string;
            version: string;
        };
        /** @description Passkeys to look up. */
        LookupPasskeys: {
            /** @description Up to 1000. */
            passkeys: components["schemas"]["Passkey"][];
        };
        /** @description A member's own data. */
        Me: {
            figures?: components["schemas"]["Figures"] | null;
            /**
             * Format: int64
             * @description Number of friends.
             */
            friends: number;
            /**
             * Format: int64
             * @description Hit-and-runs among the first 50000 accounts. Counted at most once a minute.
             */
            hit_and_runs: number;
            /** Format: int64 */
            id: number;
            leeching: components["schemas"]["OwnTorrents"];
            /** @description As the member's own devices see it. */
            presence: components["schemas"]["Presence"];
            /**
             * Format: double
             * @description Credited upload divided by credited download; null if nothing was downloaded.
             * @example 1.5
             */
            ratio?: number | null;
            seeding: components["schemas"]["OwnTorrents"];
            /** @description Sessions at this gateway. */
            sessions: components["schemas"]["Session"][];
        };
        /** @description A period in which bytes count more or less. */
        Multiplier: {
            /**
             * Format: int32
             * @description Share of downloaded bytes that is credited.
             */
            download_percent: number;
            /**
             * Format: int32
             * @description Null if it lasts until it is removed.
             */
            ends_at?: number | null;
            /** Format: int64 */
            id: number;
            note: string;
            /**
             * @description `site`, `torrent` or `user`.
             * @example site
             */
            scope: string;
            /** Format: int32 */
            starts_at: number;
            /**
             * Format: int64
             * @description Torrent or user id; 0 for the site.
             */
            subject: number;
            /**
             * Format: int32
             * @description Share of uploaded bytes that is credited.
             */
            upload_percent: number;
        };
        /** @description A page of a collection. */
        MultiplierPage: {
            items: {
                /**
                 * Format: int32
                 * @description Share of downloaded bytes that is credited.
                 */
                download_percent: number;
                /**
                 * Format: int32
                 * @description Null if it lasts until it is removed.
                 */
                ends_at?: number | null;
                /** Format: int64 */
                id: number;
                note: string;
                /**
                 * @description `site`, `torrent` or `user`.
                 * @example site
                 */
                scope: string;
                /** Format: int32 */
                starts_at: number;
                /**
                 * Format: int64
                 * @description Torrent or user id; 0 for the site.
                 */
                subject: number;
                /**
                 * Format: int32
                 * @description Share of uploaded bytes that is credited.
                 */
                upload_percent: number;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
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
        /** @description A page of a collection. */
        OnlinePersonPage: {
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
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description The session of an operator. */
        OperatorSession: {
            /** @description Send as `X-CSRF-Token` with every change. */
            csrf: string;
            /**
             * Format: int32
             * @description End of the session.
             */
            expires_at: number;
            /**
             * @description Key of the sign-in.
             * @example 1a2b3c4d
             */
            key_id: string;
            /** @description Name of the key. */
            name: string;
            /**
             * @description `verify`, `read`, `admin`.
             * @example [
             *       "admin"
             *     ]
             */
            scopes: string[];
        };
        /** @description State of the server, computed once a second. */
        Overview: {
            /** @description Critical alerts first. */
            alerts: components["schemas"]["Alert"][];
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            at_ms: number;
            gateway?: components["schemas"]["GatewayOverview"] | null;
            /** @description Dependencies. */
            health: components["schemas"]["DependencyHealth"][];
            journal?: components["schemas"]["JournalOverview"] | null;
            /**
             * @description Name of this process.
             * @example node-a
             */
            node: string;
            people?: components["schemas"]["PresenceCount"] | null;
            /**
             * Format: int32
             * @description Start of this process, in unix seconds.
             */
            started_at: number;
            tracker?: components["schemas"]["TrackerOverview"] | null;
            version: string;
        };
        OverviewHistory: {
            /** @description Oldest first, since the start of this process. */
            points: components["schemas"]["HistoryPoint"][];
            /**
             * Format: int32
             * @description Seconds between points.
             * @example 10
             */
            step_s: number;
        };
        /** @description A torrent that a member seeds or leeches. */
        OwnTorrent: {
            /** @example 0123456789abcdef0123456789abcdef01234567 */
            infohash: string;
            /**
             * Format: int32
             * @description Time of the last announce.
             */
            last_announce: number;
            /** @description `left` of the latest announce; null if the client did not send it. */
            left?: string | null;
            /** @description Null if the torrent was removed. */
            name?: string | null;
            /**
             * Format: int64
             * @description Torrent id; null if the torrent was removed.
             */
            torrent?: number | null;
            /** @description Size of the content; null if unknown. */
            total_bytes?: string | null;
        };
        /** @description Torrents that a member seeds or leeches. */
        OwnTorrents: {
            /**
             * Format: int64
             * @description Total number.
             */
            count: number;
            /** @description Up to 50, latest announce first. */
            items: components["schemas"]["OwnTorrent"][];
        };
        /** @description 8 to 64 hexadecimal digits; case is ignored. */
        Passkey: string;
        /** @description A passkey and its user. */
        PasskeyHolder: {
            /** @description As in the request. */
            passkey: string;
            /**
             * Format: int64
             * @description Id of the user; null if the passkey is unknown.
             */
            user?: number | null;
        };
        /** @description A page of a collection. */
        PasskeyHolderPage: {
            items: {
                /** @description As in the request. */
                passkey: string;
                /**
                 * Format: int64
                 * @description Id of the user; null if the passkey is unknown.
                 */
                user?: number | null;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        Peer: {
            /** @description Only for keys with `admin`. */
            addresses?: string[] | null;
            /** @description Client prefix, such as `-TR3000-`; empty if the peer id has none. */
            client: string;
            /** @description As announced by the client. */
            downloaded: string;
            /**
             * Format: int32
             * @description Time of the last announce.
             */
            last_announce: number;
            /** @description Bytes left, by the account; null if unknown. */
            left?: string | null;
            /** @description In hexadecimal digits. */
            peer_id: string;
            seeding: boolean;
            /** @description As announced by the client. */
            uploaded: string;
            /** Format: int64 */
            user: number;
        };
        /** @description A page of a collection. */
        PeerPage: {
            items: {
                /** @description Only for keys with `admin`. */
                addresses?: string[] | null;
                /** @description Client prefix, such as `-TR3000-`; empty if the peer id has none. */
                client: string;
                /** @description As announced by the client. */
                downloaded: string;
                /**
                 * Format: int32
                 * @description Time of the last announce.
                 */
                last_announce: number;
                /** @description Bytes left, by the account; null if unknown. */
                left?: string | null;
                /** @description In hexadecimal digits. */
                peer_id: string;
                seeding: boolean;
                /** @description As announced by the client. */
                uploaded: string;
                /** Format: int64 */
                user: number;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @enum {string} */
        Platform: "phone" | "computer" | "web";
        /** @description Public presence of a user. */
        Presence: {
            /** @description Empty if offline. */
            devices: components["schemas"]["Device"][];
            /**
             * @description User id, as a string.
             * @example 7
             */
            id: string;
            /**
             * Format: int32
             * @description Null if unknown.
             */
            last_seen?: number | null;
            /**
             * Format: int32
             * @description Torrents that the user leeches now.
             */
            leeching: number;
            /**
             * Format: int32
             * @description Torrents that the user seeds now.
             */
            seeding: number;
            /**
             * @description offline, pending, away, online or busy.
             * @example online
             */
            status: string;
            /** @description Status text of the user. */
            text?: string | null;
            /**
             * Format: int32
             * @description Time at which the declared status expires.
             */
            until?: number | null;
            /**
             * Format: int64
             * @description Increases with every change; 0 if the user was never online.
             */
            version: number;
        };
        /** @description Counts of users and connections. */
        PresenceCount: {
            /**
             * Format: int32
             * @description Sessions with a WebSocket, including invisible users. Needs `admin`, as do the next two fields: together with the
             *     visible devices they would reveal the number of invisible users.
             */
            connections?: number | null;
            /**
             * Format: int32
             * @description Users that are online and not invisible.
             */
            online: number;
            /** @description Users by status. */
            people: components["schemas"]["UsersByStatus"];
            platforms?: components["schemas"]["ConnectionsByPlatform"] | null;
            /**
             * Format: int32
             * @description Sessions with heartbeats over HTTP.
             */
            without_connection?: number | null;
        };
        /** @description An event in a user's history. */
        PresenceEvent: {
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            at_ms: number;
            /** @example silence */
            cause?: string | null;
            device?: string | null;
            /**
             * @description arrived (first device in), left (last device out) or transition (another status).
             * @example transition
             */
            event: string;
            /** @description Status before a transition, as the user's own devices see it. */
            from?: string | null;
            /**
             * Format: int64
             * @description Increases with time.
             */
            id: number;
            /** @description Status after a transition. */
            to?: string | null;
        };
        /** @description A page of a collection. */
        PresenceEventPage: {
            items: {
                /**
                 * Format: int64
                 * @description Unix milliseconds.
                 */
                at_ms: number;
                /** @example silence */
                cause?: string | null;
                device?: string | null;
                /**
                 * @description arrived (first device in), left (last device out) or transition (another status).
                 * @example transition
                 */
                event: string;
                /** @description Status before a transition, as the user's own devices see it. */
                from?: string | null;
                /**
                 * Format: int64
                 * @description Increases with time.
                 */
                id: number;
                /** @description Status after a transition. */
                to?: string | null;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
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
        /** @description A page of a collection. */
        PresencePage: {
            items: {
                /** @description Empty if offline. */
                devices: components["schemas"]["Device"][];
                /**
                 * @description User id, as a string.
                 * @example 7
                 */
                id: string;
                /**
                 * Format: int32
                 * @description Null if unknown.
                 */
                last_seen?: number | null;
                /**
                 * Format: int32
                 * @description Torrents that the user leeches now.
                 */
                leeching: number;
                /**
                 * Format: int32
                 * @description Torrents that the user seeds now.
                 */
                seeding: number;
                /**
                 * @description offline, pending, away, online or busy.
                 * @example online
                 */
                status: string;
                /** @description Status text of the user. */
                text?: string | null;
                /**
                 * Format: int32
                 * @description Time at which the declared status expires.
                 */
                until?: number | null;
                /**
                 * Format: int64
                 * @description Increases with every change; 0 if the user was never online.
                 */
                version: number;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description Privacy settings of a user. */
        Privacy: {
            /** @description Audience of the last-seen time, among those who may see the status. */
            last_seen: components["schemas"]["Audience"];
            /** @description Users that see nothing. */
            never: number[];
            /** @description Audience of status, text, devices and activity. */
            status: components["schemas"]["Audience"];
        };
        /** @description An error (RFC 9457). */
        Problem: {
            /**
             * @description Stable code for programs.
             * @example unknown_user
             */
            code: string;
            /**
             * @description Problem and remedy.
             * @example no user 7: see GET /api/v1/users
             */
            detail: string;
            /**
             * Format: int32
             * @description HTTP status.
             * @example 404
             */
            status: number;
            /**
             * @description Name of the HTTP status.
             * @example Not Found
             */
            title: string;
        };
        QueryPresence: {
            /** @description Up to 10,000. */
            users: components["schemas"]["UserIdOrString"][];
        };
        /** @description Items of each kind. */
        QueueCounts: {
            /** Format: int64 */
            approval: number;
            /** Format: int64 */
            dead_letter: number;
            /** Format: int64 */
            failed_entry: number;
            /**
             * Format: int64
             * @description Null during the first scan of all accounts.
             */
            hit_and_run?: number | null;
            /** Format: int64 */
            risk: number;
        };
        /** @description An item of the queue. Of `risk`, `hit_and_run` and `letter`, the one that belongs to `kind` is set. */
        QueueItem: {
            /**
             * Format: int64
             * @description Time of the risk event, of the user's last announce, of adding the torrent, or of the failure.
             */
            at: number;
            hit_and_run?: components["schemas"]["HitAndRun"] | null;
            /**
             * @description Unique in the queue.
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
         * @description Kind of an item. The order of variants breaks ties between items of the same time.
         * @enum {string}
         */
        QueueKind: "risk" | "hit_and_run" | "approval" | "dead_letter" | "failed_entry";
        QueuePage: {
            /** @description Items of each kind on all pages. */
            counts: components["schemas"]["QueueCounts"];
            /** @description Newest first. */
            items: components["schemas"]["QueueItem"][];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        QueueTorrent: {
            /** Format: int64 */
            id: number;
            /** @description Null if the torrent was removed. */
            infohash?: string | null;
            /** @description Null if the torrent was removed. */
            name?: string | null;
            /** @description Size of the content; null if the torrent was removed, `"0"` if unknown. */
            total_bytes?: string | null;
        };
        QueueUser: {
            /** @description Null if the user was removed. */
            enabled?: boolean | null;
            /** Format: int64 */
            id: number;
            name?: string | null;
        };
        /** @description State of all dependencies. */
        Readiness: {
            dependencies: components["schemas"]["DependencyHealth"][];
            /** @description Whether all dependencies work. */
            ready: boolean;
        };
        /** @description A device at another gateway. */
        RemoteDevice: {
            device: string;
            /** @example gw-b */
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
        /** @description A report that one or more announces look like cheating. Which fields apply depends on `kind`. */
        RiskEvent: {
            /** Format: int32 */
            at?: number | null;
            /** @description Rate ceiling in bytes per second; 0 for kinds that are not about a rate. */
            ceiling_bytes_per_s: string;
            /**
             * Format: int64
             * @description Minimum number of users that share the address (`shared_address`), or peer ids of the user on the torrent within an
             *     hour (`many_peer_ids`); 0 for other kinds.
             */
            count: number;
            downloaded_claimed: string;
            /** @description Bytes credited instead of the claim. */
            downloaded_credited: string;
            /**
             * Format: int64
             * @description Seconds since the previous announce.
             */
            elapsed_s?: number | null;
            /** @description Entry id in the journal. */
            id: string;
            infohash: string;
            /** @description Only for keys with `admin`. */
            ip?: string | null;
            /** @enum {string} */
            kind: "client_rate" | "user_rate" | "upload_without_leechers" | "upload_after_stop" | "upload_ahead_of_download" | "left_without_download" | "completed_without_download" | "shared_address" | "many_peer_ids";
            /** @description In hexadecimal digits. */
            peer_id: string;
            /** Format: int64 */
            torrent?: number | null;
            /**
             * Format: int64
             * @description Events of this user and kind that were suppressed before this one.
             */
            unreported?: number | null;
            uploaded_claimed: string;
            /** @description Bytes credited instead of the claim. */
            uploaded_credited: string;
            /** Format: int64 */
            user?: number | null;
        };
        /** @description A page of a collection. */
        RiskEventPage: {
            items: {
                /** Format: int32 */
                at?: number | null;
                /** @description Rate ceiling in bytes per second; 0 for kinds that are not about a rate. */
                ceiling_bytes_per_s: string;
                /**
                 * Format: int64
                 * @description Minimum number of users that share the address (`shared_address`), or peer ids of the user on the torrent within an
                 *     hour (`many_peer_ids`); 0 for other kinds.
                 */
                count: number;
                downloaded_claimed: string;
                /** @description Bytes credited instead of the claim. */
                downloaded_credited: string;
                /**
                 * Format: int64
                 * @description Seconds since the previous announce.
                 */
                elapsed_s?: number | null;
                /** @description Entry id in the journal. */
                id: string;
                infohash: string;
                /** @description Only for keys with `admin`. */
                ip?: string | null;
                /** @enum {string} */
                kind: "client_rate" | "user_rate" | "upload_without_leechers" | "upload_after_stop" | "upload_ahead_of_download" | "left_without_download" | "completed_without_download" | "shared_address" | "many_peer_ids";
                /** @description In hexadecimal digits. */
                peer_id: string;
                /** Format: int64 */
                torrent?: number | null;
                /**
                 * Format: int64
                 * @description Events of this user and kind that were suppressed before this one.
                 */
                unreported?: number | null;
                uploaded_claimed: string;
                /** @description Bytes credited instead of the claim. */
                uploaded_credited: string;
                /** Format: int64 */
                user?: number | null;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        RotatePasskey: {
            /** @description Default: random. */
            passkey?: string | null;
        };
        /**
         * @description Scope of a key.
         * @enum {string}
         */
        Scope: "verify" | "read" | "admin";
        /** @description A session, for keys with `admin`. */
        Session: {
            /** @description Whether it has a WebSocket; otherwise it sends heartbeats over HTTP. */
            connected: boolean;
            device: string;
            /** @description Last ten heartbeats, latest first, in unix milliseconds. */
            heartbeats_ms: number[];
            /**
             * @description Gateway, if there are several.
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
             * @description Start of the session.
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
        SetClientRule: {
            /** @description Whether announces are accepted. */
            allowed: boolean;
            name?: string;
        };
        /** @description Privacy settings of a user. */
        SetPrivacy: {
            /** @description Audience of the last-seen time, among those who may see the status. */
            last_seen: components["schemas"]["Audience"];
            /** @description Up to 1000 users that see nothing. */
            never?: components["schemas"]["UserId"][];
            /** @description Audience of status, text, devices and activity. */
            status: components["schemas"]["Audience"];
        };
        /**
         * @description Severity of an alert.
         * @enum {string}
         */
        Severity: "critical" | "warning";
        /** @description Sign-in with a key. */
        SignIn: {
            /** @example rck_1a2b3c4d_0123456789abcdef0123456789abcdef01234567 */
            key: string;
        };
        /** @description Totals of this process. */
        Stats: {
            /**
             * Format: int64
             * @description Enabled and disabled.
             */
            torrents: number;
            tracker?: components["schemas"]["TrackerStats"] | null;
            /**
             * Format: int64
             * @description Enabled and disabled.
             */
            users: number;
            version: string;
        };
        /** @description A period in which a client's counters grew without a gap. The growth is credited up to the client's rate ceiling. */
        Stretch: {
            bridged?: components["schemas"]["BridgedTransfer"] | null;
            /** @description Downloaded bytes that are credited. */
            downloaded: string;
            /** @description Highest announced `downloaded`. */
            downloaded_high: string;
            /** @description Lowest announced `downloaded`. */
            downloaded_low: string;
            /**
             * Format: int32
             * @description Time of the first announce.
             */
            first: number;
            /** @description Whether this is the end of earlier stretches that were merged into `settled` of the client. */
            is_settled: boolean;
            /**
             * Format: int32
             * @description Time of the last announce.
             */
            last: number;
            /**
             * Format: int64
             * @description Tracker processes that received the announces. Bytes announced to several count once.
             */
            nodes: number;
            /** @description Uploaded bytes that are credited. */
            uploaded: string;
            /** @description Highest announced `uploaded`. */
            uploaded_high: string;
            /** @description Lowest announced `uploaded`. */
            uploaded_low: string;
            /** @description Downloaded bytes above the rate ceiling, not credited. */
            withheld_downloaded: string;
            /** @description Uploaded bytes above the rate ceiling, not credited. */
            withheld_uploaded: string;
        };
        /** @description Counts of a swarm. */
        SwarmCounts: {
            /** Format: int32 */
            leechers: number;
            /** Format: int32 */
            seeders: number;
            /**
             * Format: int32
             * @description Completions since this process started.
             */
            snatches: number;
        };
        SwarmPage: {
            items: components["schemas"]["ListedSwarm"][];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
            /**
             * Format: int64
             * @description Torrents on all pages; for a search at most 100000.
             */
            total: number;
        };
        /** @description A torrent. */
        Torrent: {
            /** @description While false, announces are accepted but no peers are returned. */
            approved: boolean;
            /** Format: int32 */
            created_at: number;
            /** @description Whether announces are accepted. */
            enabled: boolean;
            /** Format: int64 */
            id: number;
            /** @example 0123456789abcdef0123456789abcdef01234567 */
            infohash: string;
            /** @description Truncated v2 infohash of a hybrid torrent. */
            infohash_v2?: string | null;
            /**
             * Format: int64
             * @description Leech slots; -1 is unlimited, null the configured default.
             */
            leech_slots?: number | null;
            name: string;
            swarm?: components["schemas"]["SwarmCounts"] | null;
            /** @description Size of the content; `"0"` if unknown. */
            total_bytes: string;
        };
        /** @description A user's account on a torrent. */
        TorrentAccount: {
            /** @description Client of the latest announce, such as `-TR3000-`. */
            client: string;
            /**
             * Format: int32
             * @description Time of the first completion.
             */
            completed_at?: number | null;
            figures: components["schemas"]["Figures"];
            /** @description Whether the user leeches the torrent now. */
            leeching: boolean;
            /** @description `left` of the latest announce; null if the client did not send it. */
            left?: string | null;
            /** @description Whether the user seeds the torrent now. */
            seeding: boolean;
            /** Format: int64 */
            user: number;
        };
        /** @description A page of a collection. */
        TorrentAccountPage: {
            items: {
                /** @description Client of the latest announce, such as `-TR3000-`. */
                client: string;
                /**
                 * Format: int32
                 * @description Time of the first completion.
                 */
                completed_at?: number | null;
                figures: components["schemas"]["Figures"];
                /** @description Whether the user leeches the torrent now. */
                leeching: boolean;
                /** @description `left` of the latest announce; null if the client did not send it. */
                left?: string | null;
                /** @description Whether the user seeds the torrent now. */
                seeding: boolean;
                /** Format: int64 */
                user: number;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description A torrent with its traffic. */
        TorrentDetails: {
            figures?: components["schemas"]["Figures"] | null;
            torrent: components["schemas"]["Torrent"];
        };
        /** @description A page of a collection. */
        TorrentPage: {
            items: {
                /** @description While false, announces are accepted but no peers are returned. */
                approved: boolean;
                /** Format: int32 */
                created_at: number;
                /** @description Whether announces are accepted. */
                enabled: boolean;
                /** Format: int64 */
                id: number;
                /** @example 0123456789abcdef0123456789abcdef01234567 */
                infohash: string;
                /** @description Truncated v2 infohash of a hybrid torrent. */
                infohash_v2?: string | null;
                /**
                 * Format: int64
                 * @description Leech slots; -1 is unlimited, null the configured default.
                 */
                leech_slots?: number | null;
                name: string;
                swarm?: components["schemas"]["SwarmCounts"] | null;
                /** @description Size of the content; `"0"` if unknown. */
                total_bytes: string;
            }[];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
        };
        /** @description A torrent without its swarm. */
        TorrentSummary: {
            /** @description While false, announces are accepted but no peers are returned. */
            approved: boolean;
            /** Format: int32 */
            created_at: number;
            /** @description Whether announces are accepted. */
            enabled: boolean;
            /** Format: int64 */
            id: number;
            /** @example 0123456789abcdef0123456789abcdef01234567 */
            infohash: string;
            name: string;
            /** @description Size of the content; `"0"` if unknown. */
            total_bytes: string;
        };
        /** @description State of the tracker. */
        TrackerOverview: {
            /**
             * Format: int64
             * @description Accepted announces since the start.
             */
            announces: number;
            /**
             * Format: double
             * @description Accepted announces.
             */
            announces_per_s: number;
            /** Format: double */
            download_bytes_per_s: number;
            /** @description Raw bytes since the start. */
            downloaded: string;
            /** Format: int64 */
            leechers: number;
            /** Format: int64 */
            peers: number;
            /**
             * Format: double
             * @description Refused requests.
             */
            refused_per_s: number;
            /** Format: int64 */
            seeders: number;
            /**
             * Format: int64
             * @description Torrents with peers since the start.
             */
            torrents_active: number;
            /**
             * Format: int64
             * @description Torrents with a leecher.
             */
            torrents_leeched: number;
            /**
             * Format: int64
             * @description Torrents with a seeder.
             */
            torrents_seeded: number;
            /**
             * Format: double
             * @description Uneven, because bytes are known only when clients announce.
             */
            upload_bytes_per_s: number;
            /** @description Raw bytes since the start. */
            uploaded: string;
        };
        /** @description Counters of a tracker since its start. */
        TrackerStats: {
            /**
             * Format: int64
             * @description Accepted announces.
             */
            announces: number;
            /** @description Raw bytes. */
            downloaded: string;
            /** Format: int64 */
            peers: number;
            /**
             * Format: int64
             * @description Refused requests.
             */
            refused: number;
            /**
             * Format: int64
             * @description Scraped torrents.
             */
            scrapes: number;
            /** @description Raw bytes. */
            uploaded: string;
        };
        Transferred: {
            /** @description Raw bytes. */
            downloaded: string;
            /** @description Raw bytes. */
            uploaded: string;
        };
        /** @description Fields to change; omitted fields stay as they are. */
        UpdateTorrent: {
            /** @description While false, announces are accepted but no peers are returned. */
            approved?: boolean | null;
            /** @description Whether announces are accepted. */
            enabled?: boolean | null;
            /**
             * Format: int64
             * @description Leech slots; -1 is unlimited, null the configured default. Does not stop downloads in progress.
             */
            leech_slots?: number | null;
        };
        /** @description Fields to change; omitted fields stay as they are. */
        UpdateUser: {
            /** @description Whether announces are accepted. */
            enabled?: boolean | null;
            /**
             * Format: int64
             * @description Leech slots; -1 is unlimited, null the configured default. Does not stop downloads in progress.
             */
            leech_slots?: number | null;
            /** @description Display name, without control characters; null removes it. */
            name?: string | null;
        };
        UpdateView: {
            /** @description While true, the view applies no entries. */
            paused: boolean;
        };
        /** @description A user. */
        User: {
            /** Format: int32 */
            created_at: number;
            /** @description Whether announces are accepted. */
            enabled: boolean;
            /** Format: int64 */
            id: number;
            /**
             * Format: int64
             * @description Leech slots; -1 is unlimited, null the configured default.
             */
            leech_slots?: number | null;
            name?: string | null;
            /** @description Only for keys with `admin`. */
            passkey?: string | null;
            /** @description Whether this is an external user: admitted by the whitelist or the verification endpoint. */
            vouched: boolean;
        };
        /** @description A user with traffic and activity. */
        UserDetails: {
            figures?: components["schemas"]["Figures"] | null;
            /**
             * Format: int64
             * @description Torrents that the user leeches now.
             */
            leeching: number;
            /**
             * Format: int64
             * @description Torrents that the user seeds now.
             */
            seeding: number;
            user: components["schemas"]["User"];
        };
        /**
         * Format: int64
         * @description A user id.
         */
        UserId: number;
        UserIdOrString: number | string;
        UserPage: {
            items: components["schemas"]["ListedUser"][];
            /** @description `cursor` of the next page; null after the last page. */
            next?: string | null;
            /**
             * Format: int64
             * @description Users on all pages; null for a search sorted by id.
             */
            total?: number | null;
        };
        UserSessions: {
            /** @description Devices at other gateways. */
            elsewhere: components["schemas"]["RemoteDevice"][];
            /** @description One per connection, and one per device that sends heartbeats over HTTP. */
            sessions: components["schemas"]["Session"][];
        };
        UsersByStatus: {
            /** Format: int32 */
            away: number;
            /** Format: int32 */
            busy: number;
            /**
             * Format: int32
             * @description Appear offline to others. Needs `admin`.
             */
            invisible?: number | null;
            /** Format: int32 */
            online: number;
            /**
             * Format: int32
             * @description Online before a restart and expected to reconnect.
             */
            pending: number;
        };
        /** @description Result of a passkey verification. */
        VerifyReply: {
            /** @description Whether announces with this passkey are accepted. */
            valid: boolean;
        };
        /** @description Progress of a view. */
        ViewOverview: {
            /**
             * Format: double
             * @description Age of the oldest of them, in seconds.
             */
            behind_s: number;
            /** @description Consumer group. */
            group: string;
            /**
             * Format: int64
             * @description Entries that are not applied yet.
             */
            lag: number;
            /** @description Whether an operator paused the view. */
            paused: boolean;
            /**
             * Format: double
             * @description Applied entries.
             */
            rate_per_s: number;
            /** @example ledger */
            view: string;
        };
        ViewStatus: {
            /** @description While true, the view applies no entries. */
            paused: boolean;
            view: string;
        };
        WhitelistChanged: {
            /**
             * Format: int64
             * @description Passkeys that were actually added or removed.
             */
            changed: number;
        };
        WhitelistChecked: {
            /** @description In the order of the request. */
            listed: boolean[];
        };
        WhitelistPasskeys: {
            /** @description 1 to 10000 passkeys of 8 to 64 hexadecimal digits; case is ignored. */
            passkeys: components["schemas"]["Passkey"][];
        };
        WhitelistReplaced: {
            /**
             * Format: int64
             * @description Passkeys now.
             */
            after: number;
            /**
             * Format: int64
             * @description Passkeys before.
             */
            before: number;
        };
        WhitelistSize: {
            /**
             * Format: int64
             * @description Passkeys on the whitelist.
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
