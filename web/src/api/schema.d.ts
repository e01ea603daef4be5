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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["Page_AuditRecord"];
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
                        "application/json": components["schemas"]["Client"][];
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
                    "application/json": components["schemas"]["ClientSaid"];
                };
            };
            responses: {
                /** @description What holds now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Client"];
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
                    "application/json": components["schemas"]["PairsSaid"];
                };
            };
            responses: {
                /** @description What became of them */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PairsAdded"];
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
        /** Pauses a view, or lets it go on */
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
                    "application/json": components["schemas"]["ViewChange"];
                };
            };
            responses: {
                /** @description What it does now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["View"];
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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["Page_Letter"];
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
                    "application/json": components["schemas"]["LettersSaid"];
                };
            };
            responses: {
                /** @description How many */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LettersDone"];
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
                    "application/json": components["schemas"]["LettersSaid"];
                };
            };
            responses: {
                /** @description How many */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LettersDone"];
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
                        "application/json": components["schemas"]["Letter"];
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
                        "application/json": components["schemas"]["Multiplier"][];
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
                    "application/json": components["schemas"]["MultiplierSaid"];
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
        /** Ends a multiplier; what it has added stays */
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
                        "application/json": components["schemas"]["BannedPorts"][];
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
                    "application/json": components["schemas"]["BanSaid"];
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
        /** How many are here, over all gateways */
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
                    "application/json": components["schemas"]["HeartbeatSaid"];
                };
            };
            responses: {
                /** @description It was heard */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HeartbeatHeard"];
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
                    "application/json": components["schemas"]["PeopleSaid"];
                };
            };
            responses: {
                /** @description In the order asked */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PeopleShown"];
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
                        "application/json": components["schemas"]["Person"];
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
        /** Announces that claimed more than can be believed */
        get: {
            parameters: {
                query?: {
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
                /** @description A page, newest first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_Risk"];
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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["Page_Torrent"];
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
                    "application/json": components["schemas"]["TorrentSaid"];
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
                        "application/json": components["schemas"]["TorrentWithFigures"];
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
                    "application/json": components["schemas"]["TorrentChange"];
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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["Page_Peer"];
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
        /** All users */
        get: {
            parameters: {
                query?: {
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
                /** @description A page of users, by their numbers */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_User"];
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
                    "application/json": components["schemas"]["UserSaid"];
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
                    "application/json": components["schemas"]["PasskeysSaid"];
                };
            };
            responses: {
                /** @description In the order asked */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PasskeyHolder"][];
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
                        "application/json": components["schemas"]["UserWithAccounts"];
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
        /** Shuts a user out, or lets them in again; limits what they leech at once */
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
                    "application/json": components["schemas"]["UserChange"];
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
                        "application/json": components["schemas"]["SessionsShown"];
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
                    "application/json": components["schemas"]["DisconnectSaid"];
                };
            };
            responses: {
                /** @description How many there were */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Disconnected"];
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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["Page_Friend"];
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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["Page_HitAndRun"];
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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["ActivePage"];
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
                    "application/json": components["schemas"]["PasskeySaid"];
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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["Page_PresenceEvent"];
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
                    "application/json": components["schemas"]["PrivacySaid"];
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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["ActivePage"];
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
                    /** @description `next_cursor` of the page before; left out for the first page. */
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
                        "application/json": components["schemas"]["Page_Account"];
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
                    "application/json": components["schemas"]["WhitelistSaid"];
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
                    "application/json": components["schemas"]["WhitelistSaid"];
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
                    "application/json": components["schemas"]["WhitelistSaid"];
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
                        "application/json": components["schemas"]["Alive"];
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
                        "application/json": components["schemas"]["Verdict"];
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
            /** @description Whether the user seeds it right now. */
            seeding: boolean;
            /**
             * Format: int64
             * @description The torrent's number.
             */
            torrent: number;
        };
        /** @description A page of what a user seeds or leeches, newest announce first. */
        ActivePage: {
            /**
             * Format: int64
             * @description How many there are in all.
             */
            count: number;
            /** @description What is on this page. */
            items: components["schemas"]["ActiveTorrent"][];
            /** @description Where the next page begins; null if this is the last. */
            next_cursor?: string | null;
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
        };
        /** @description That the server lives. */
        Alive: {
            /**
             * @description Always `alive`.
             * @example alive
             */
            state: string;
            /** @description Which version it is. */
            version: string;
        };
        /**
         * @description Whether somebody looks at the app.
         * @enum {string}
         */
        AppStateName: "foreground" | "background" | "inactive";
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
        /** @description Why ports are banned. */
        BanSaid: {
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
        /** @description Programs whose peer ids begin alike. */
        Client: {
            /** @description Whether they may announce. */
            allowed: boolean;
            /** @description What they are called. */
            name: string;
            /** @description The first characters of their peer ids, such as `-TR3`; `hex:` and digits for anything else. */
            prefix: string;
        };
        /** @description What becomes of programs with a prefix. */
        ClientSaid: {
            /** @description Whether they may announce. */
            allowed: boolean;
            /** @description What they are called. */
            name?: string;
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
        /**
         * @description What a person can say of themselves.
         * @enum {string}
         */
        DeclaredName: "online" | "away" | "busy" | "invisible";
        /** @description How one dependency is, as it is written. */
        DependencyHealth: {
            /**
             * @description What it is.
             * @example database
             */
            name: string;
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
        /** @description A device of a person at another gateway. */
        DeviceElsewhere: {
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
        /** @description Whom to disconnect. */
        DisconnectSaid: {
            /** @description Only this device; all of them if left out. */
            device?: string | null;
            /**
             * @description Whether their clients may come back by themselves.
             * @default false
             */
            reconnect: boolean;
        };
        /** @description What was disconnected. */
        Disconnected: {
            /** @description Sessions that were ended here, and devices at other gateways that are told to end theirs. */
            sessions: number;
        };
        /** @description What was moved, and how long. */
        Figures: {
            /**
             * Format: int64
             * @description How often something was completed.
             */
            completed: number;
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
             * @description Seconds spent leeching.
             */
            leeching_s: number;
            /**
             * Format: int64
             * @description Seconds spent seeding.
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
        /** @description When to come again. */
        HeartbeatHeard: {
            /**
             * Format: int32
             * @description After so many seconds; null after a goodbye.
             */
            next_s?: number | null;
        };
        /** @description What a device says of itself. */
        HeartbeatSaid: {
            app_state?: components["schemas"]["AppStateName"] | null;
            /** @description Its name: the same each time. */
            device: string;
            /**
             * @description The last heartbeat: the device is gone at once.
             * @default false
             */
            goodbye: boolean;
            platform?: components["schemas"]["PlatformName"] | null;
            status?: components["schemas"]["DeclaredName"] | null;
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
             * @description How many seconds of seeding are owed; null once it is a hit and run.
             */
            seeding_s_left?: number | null;
            /**
             * @description `owing` (still time to seed) or `hit_and_run` (gone without having seeded enough).
             * @example owing
             */
            standing: string;
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
             * @description Reports of implausible announces.
             */
            risks: number;
            /** @description Whether that is more than `journal.length_alarm`. */
            too_long: boolean;
        };
        /** @description An entry that could not be taken. */
        Letter: {
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
        LettersDone: {
            /**
             * Format: int64
             * @description How many of those meant were there.
             */
            count: number;
        };
        /** @description Which entries are meant: all, or up to 1000 by their ids. */
        LettersSaid: {
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
        /** @description A multiplier to be added. It ends after it starts. */
        MultiplierSaid: {
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
        NumberOrText: number | string;
        /** @description A page of a list. */
        Page_Account: {
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
                /** @description Whether the user seeds it right now. */
                seeding: boolean;
                /**
                 * Format: int64
                 * @description The torrent's number.
                 */
                torrent: number;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        Page_AuditRecord: {
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
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        Page_Friend: {
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
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        Page_HitAndRun: {
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
                 * @description How many seconds of seeding are owed; null once it is a hit and run.
                 */
                seeding_s_left?: number | null;
                /**
                 * @description `owing` (still time to seed) or `hit_and_run` (gone without having seeded enough).
                 * @example owing
                 */
                standing: string;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        Page_Letter: {
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
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        Page_Peer: {
            /** @description What is on it. */
            items: {
                /** @description Where it can be reached; only for keys with `admin`. */
                addresses?: string[] | null;
                /** @description Its running total. */
                downloaded: string;
                /**
                 * Format: int32
                 * @description When it last announced.
                 */
                last_announce: number;
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
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        Page_PresenceEvent: {
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
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        Page_Risk: {
            /** @description What is on it. */
            items: {
                /**
                 * Format: int32
                 * @description When.
                 */
                at?: number | null;
                /** @description The rate above which nobody is believed, in bytes a second. */
                ceiling_bytes_per_s: string;
                /** @description Bytes that were claimed to be downloaded. */
                downloaded_claimed: string;
                /** @description Bytes that were credited instead. */
                downloaded_credited: string;
                /**
                 * Format: int64
                 * @description Seconds since the announce before.
                 */
                elapsed_s?: number | null;
                /** @description Its place among its like. */
                id: string;
                /** @description Its infohash. */
                infohash: string;
                /** @description From where; only for keys with `admin`. */
                ip?: string | null;
                /** @description The client's id, in hexadecimal digits. */
                peer_id: string;
                /**
                 * Format: int64
                 * @description Which torrent.
                 */
                torrent?: number | null;
                /**
                 * Format: int64
                 * @description How many more of this user went unreported before this one.
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
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        Page_Torrent: {
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
                swarm?: components["schemas"]["Swarm"] | null;
                /** @description The size of its content; `"0"` where it is not known. */
                total_bytes: string;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next_cursor?: string | null;
        };
        /** @description A page of a list. */
        Page_User: {
            /** @description What is on it. */
            items: {
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
                /** @description Their passkey; only for keys with `admin`. */
                passkey?: string | null;
                /** @description Whether they are known only by a passkey that the whitelist or the site's verify endpoint vouches for. */
                vouched: boolean;
            }[];
            /** @description Where the next page begins; null if this is the last. */
            next_cursor?: string | null;
        };
        /** @description Two users who are to be friends, such as `[7, 9]` */
        Pair: number[];
        /** @description What became of pairs. */
        PairsAdded: {
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
        /** @description Pairs of users who are to be friends. */
        PairsSaid: {
            /** @description Up to 10000 of them. */
            pairs: components["schemas"]["Pair"][];
        };
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
        /** @description A passkey to give. */
        PasskeySaid: {
            /** @description The new passkey; left out for a random one. */
            passkey?: string | null;
        };
        /** @description A passkey as a caller writes it: 8 to 64 hexadecimal digits; upper case is taken as lower case. */
        PasskeyText: string;
        /** @description Which passkeys are meant. */
        PasskeysSaid: {
            /** @description Up to 1000 of them. */
            passkeys: components["schemas"]["PasskeyText"][];
        };
        /** @description A peer of a swarm. */
        Peer: {
            /** @description Where it can be reached; only for keys with `admin`. */
            addresses?: string[] | null;
            /** @description Its running total. */
            downloaded: string;
            /**
             * Format: int32
             * @description When it last announced.
             */
            last_announce: number;
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
        /** @description People by status. */
        PeopleByStatus: {
            /** Format: int32 */
            away: number;
            /** Format: int32 */
            busy: number;
            /**
             * Format: int32
             * @description Hidden: to others they are offline.
             */
            invisible: number;
            /** Format: int32 */
            online: number;
            /**
             * Format: int32
             * @description Were here before a restart, and have a while to come back.
             */
            pending: number;
        };
        /** @description Which people are meant. */
        PeopleSaid: {
            /** @description Up to 10,000 of them. */
            users: components["schemas"]["NumberOrText"][];
        };
        /** @description Many people. */
        PeopleShown: {
            /** @description In the order asked. */
            users: components["schemas"]["Person"][];
        };
        /** @description A person, as others see them. */
        Person: {
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
        /**
         * @description What kind of device it is.
         * @enum {string}
         */
        PlatformName: "phone" | "computer" | "web";
        /** @description How many are here. */
        PresenceCount: {
            /**
             * Format: int32
             * @description Sessions with a connection.
             */
            connections: number;
            /**
             * Format: int32
             * @description People who are here and can be seen.
             */
            online: number;
            /** @description People by status, as others see them. */
            people: components["schemas"]["PeopleByStatus"];
            /** @description Connections by platform. */
            platforms: components["schemas"]["ConnectionsByPlatform"];
            /**
             * Format: int32
             * @description Sessions that live by heartbeats over HTTP.
             */
            without_connection: number;
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
        /** @description Who may see what of a person. */
        Privacy: {
            /** @description Who sees when they were last here; only of those who see the status. */
            last_seen: components["schemas"]["Visibility"];
            /** @description Who never sees anything. */
            never: number[];
            /** @description Who sees their status, text, devices and what they seed. */
            status: components["schemas"]["Visibility"];
        };
        /** @description Who may see what of a person from now on. */
        PrivacySaid: {
            /** @description Who sees when they were last here; only of those who see the status. */
            last_seen: components["schemas"]["Visibility"];
            /** @description Who never sees anything; up to 1000 users. */
            never?: components["schemas"]["UserNumber"][];
            /** @description Who sees their status, text, devices and what they seed. */
            status: components["schemas"]["Visibility"];
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
        /** @description How everything is that the server depends on. */
        Readiness: {
            /** @description One by one. */
            dependencies: components["schemas"]["DependencyHealth"][];
            /** @description Whether all of it is well. */
            ready: boolean;
        };
        /** @description An announce that claimed more than can be believed. */
        Risk: {
            /**
             * Format: int32
             * @description When.
             */
            at?: number | null;
            /** @description The rate above which nobody is believed, in bytes a second. */
            ceiling_bytes_per_s: string;
            /** @description Bytes that were claimed to be downloaded. */
            downloaded_claimed: string;
            /** @description Bytes that were credited instead. */
            downloaded_credited: string;
            /**
             * Format: int64
             * @description Seconds since the announce before.
             */
            elapsed_s?: number | null;
            /** @description Its place among its like. */
            id: string;
            /** @description Its infohash. */
            infohash: string;
            /** @description From where; only for keys with `admin`. */
            ip?: string | null;
            /** @description The client's id, in hexadecimal digits. */
            peer_id: string;
            /**
             * Format: int64
             * @description Which torrent.
             */
            torrent?: number | null;
            /**
             * Format: int64
             * @description How many more of this user went unreported before this one.
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
        /** @description Somebody's sessions. */
        SessionsShown: {
            /** @description Devices at other gateways, which know more about them. */
            elsewhere: components["schemas"]["DeviceElsewhere"][];
            /** @description One for each connection, and for each device that sends heartbeats over HTTP. */
            sessions: components["schemas"]["Session"][];
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
        /** @description How many are on a torrent. */
        Swarm: {
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
            swarm?: components["schemas"]["Swarm"] | null;
            /** @description The size of its content; `"0"` where it is not known. */
            total_bytes: string;
        };
        /** @description What to change about a torrent. What is left out stays. */
        TorrentChange: {
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
        /** @description A torrent to be added. */
        TorrentSaid: {
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
        /** @description A torrent, and what was moved of it. */
        TorrentWithFigures: {
            figures?: components["schemas"]["Figures"] | null;
            /** @description The torrent. */
            torrent: components["schemas"]["Torrent"];
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
            /** @description Their passkey; only for keys with `admin`. */
            passkey?: string | null;
            /** @description Whether they are known only by a passkey that the whitelist or the site's verify endpoint vouches for. */
            vouched: boolean;
        };
        /** @description What to change about a user. What is left out stays. */
        UserChange: {
            /** @description Whether they may announce. */
            enabled?: boolean | null;
            /**
             * Format: int64
             * @description How many torrents they may leech at once: a number, -1 for any number, null for the configured default. Who
             *     leeches more already goes on.
             */
            leech_slots?: number | null;
        };
        /**
         * Format: int64
         * @description The number of a user.
         */
        UserNumber: number;
        /** @description A user to be added. */
        UserSaid: {
            /**
             * Format: int64
             * @description Their number on your site; left out for the next free one.
             */
            id?: number | null;
            /** @description Their passkey; left out for a random one. */
            passkey?: string | null;
        };
        /** @description A user, and what they moved. */
        UserWithAccounts: {
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
        /** @description Whether a passkey may announce. */
        Verdict: {
            /** @description Whether it may. */
            valid: boolean;
        };
        /** @description What a view does. */
        View: {
            /** @description Whether its entries wait in the journal. */
            paused: boolean;
            /** @description The view. */
            view: string;
        };
        /** @description What to change about a view. */
        ViewChange: {
            /** @description Whether its entries wait in the journal. */
            paused: boolean;
        };
        /**
         * @description To whom something is shown.
         * @enum {string}
         */
        Visibility: "everyone" | "friends" | "nobody";
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
        /** @description Some passkeys. */
        WhitelistSaid: {
            /** @description 1 to 10000 of them: 8 to 64 hexadecimal digits each; upper case is taken as lower case. */
            passkeys: components["schemas"]["PasskeyText"][];
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
