/** Who asks; both servers know the same people. */
export type Asker = 'admin' | 'visitor' | 'nobody' | 'wrong-token'

/** Media types that cases send or ask for. */
export const media = {
  json: 'application/json',
  yaml: 'application/yaml',
  protobuf: 'application/vnd.kubernetes.protobuf',
  jsonPatch: 'application/json-patch+json',
  mergePatch: 'application/merge-patch+json',
  strategicPatch: 'application/strategic-merge-patch+json',
  applyPatch: 'application/apply-patch+yaml',
  table: 'application/json;as=Table;v=v1;g=meta.k8s.io',
  metadata: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  metadataList: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
} as const

/** How a request departs from the plainest one. */
export interface AskOptions {
  readonly as?: Asker
  readonly accept?: string
  /** Content type of the body; JSON unless given, none when empty. */
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** One request. `{ns}` in path and body stands for the namespace of the topic. */
export interface Ask extends AskOptions {
  readonly method: string
  /** Path and query, sent as they stand. */
  readonly path: string
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown
  /** Asked again until the answer is such a one: what was granted or taken away takes a moment to count. */
  readonly until?: (answer: Answer) => boolean
  /** A watch: how many events to wait for before it is left. */
  readonly events?: number
  /** Requests to make once the watch is open. */
  readonly meanwhile?: readonly Step[]
}

/** What a server answered, as it came. */
export interface Answer {
  readonly code: number
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly text: string
  /** The parsed body; `undefined` when it is not JSON. */
  readonly json: unknown
  /** What a watch delivered. */
  readonly events?: readonly unknown[]
}

/** A request, or how to make one from earlier answers of the same server: of the case, and of what came before. */
export type Step = Ask | ((seen: readonly Answer[], before: readonly Answer[]) => Ask)

/** A claim that both servers answer a series of requests alike. */
export interface Case {
  readonly name: string
  readonly steps: readonly Step[]
  /** Cases in one lane run one after the other, because they use the same names. */
  readonly lane?: string
  /** Cuts an answer down to what the case is about. */
  readonly view?: (json: unknown) => unknown
  /** The same for an answer that is plain text. */
  readonly viewText?: (text: string) => unknown
}

/** Cases that belong together; they share a namespace of their own. */
export interface Topic {
  readonly name: string
  /** Made on both servers beforehand; not compared. */
  readonly before?: readonly Step[]
  readonly cases: readonly Case[]
}

const ask =
  (method: string) =>
  (path: string, options: AskOptions = {}): Ask => ({ method, path, ...options })
const askWithBody =
  (method: string) =>
  (path: string, body: unknown, options: AskOptions = {}): Ask => ({
    method,
    path,
    body,
    ...options,
  })

export const get = ask('GET')
export const head = ask('HEAD')
export const post = askWithBody('POST')
export const put = askWithBody('PUT')
export const patch = (path: string, type: string, body: unknown, options: AskOptions = {}): Ask =>
  askWithBody('PATCH')(path, body, { ...options, type })
export const del = (path: string, body?: unknown, options: AskOptions = {}): Ask => ({
  method: 'DELETE',
  path,
  ...(body !== undefined && { body }),
  ...options,
})

/** A watch that is left after `events` events, or when the server ends it. */
export const watch = (
  path: string,
  events: number,
  options: AskOptions & { readonly meanwhile?: readonly Step[] } = {},
): Ask => ({ method: 'GET', path, events, ...options })

/** The same request, made until it is answered with `code`. */
export const until = (code: number, ask: Ask): Ask => ({
  ...ask,
  until: (answer) => answer.code === code,
})

/** One case per row: a name and the requests. */
export const cases = (rows: Readonly<Record<string, Step | readonly Step[]>>): Case[] =>
  Object.entries(rows).map(([name, steps]) => ({
    name,
    steps: Array.isArray(steps) ? (steps as readonly Step[]) : [steps as Step],
  }))
