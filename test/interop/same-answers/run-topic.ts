import type { Answer, Ask, Case, Step, Topic } from './ask.ts'
import { compareAnswers, type Difference } from './compare.ts'
import type { LiveServer } from './live-server.ts'
import { Steadier } from './steady.ts'

/** The two servers that are compared. */
export interface ServerPair {
  readonly ours: LiveServer
  readonly theirs: LiveServer
}

/** What came of a topic. */
export interface TopicOutcome {
  readonly differences: readonly Difference[]
  readonly requests: number
}

const lanesAtATime = 6

/** An answer together with the request that brought it. */
interface Exchange {
  readonly ask: Ask
  readonly answer: Answer
}

const resolved = (step: Step, seen: readonly Answer[]): Ask =>
  typeof step === 'function' ? step(seen) : step

const patienceMs = 5_000

/** Repeats a request that needs the effect of an earlier one, which its server may not have seen yet. */
async function answerWhenReady(
  server: LiveServer,
  ask: Ask,
  namespace: string,
  onceOpen: () => Promise<void>,
): Promise<Answer> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const answer = await server.answer(ask, namespace, onceOpen)
    const isReady = ask.until === undefined || answer.code === ask.until
    if (isReady || performance.now() > deadline) return answer
  }
}

/** Makes the requests of a case one after the other, with those meanwhile in a watch in their place. */
async function exchangesOf(
  server: LiveServer,
  steps: readonly Step[],
  namespace: string,
  before: readonly Answer[] = [],
): Promise<Exchange[]> {
  const done: Exchange[] = []
  for (const step of steps) {
    const seen = [...before, ...done.map(({ answer }) => answer)]
    const ask = resolved(step, seen)
    let inside: Exchange[] = []
    const answer = await answerWhenReady(server, ask, namespace, async () => {
      if (ask.meanwhile) inside = await exchangesOf(server, ask.meanwhile, namespace, seen)
    })
    done.push(...inside, { ask, answer })
  }
  return done
}

/** The namespace that the cases of a topic work in, on either server. */
export const namespaceOf = (topic: Topic): string =>
  `same-${topic.name.replaceAll(/[^a-z0-9]+/g, '-')}`

async function runCase(topic: Topic, one: Case, servers: ServerPair): Promise<TopicOutcome> {
  const namespace = namespaceOf(topic)
  const [ours, theirs] = await Promise.all([
    exchangesOf(servers.ours, one.steps, namespace),
    exchangesOf(servers.theirs, one.steps, namespace),
  ])
  const ourNames = new Steadier()
  const theirNames = new Steadier()
  const differences = theirs.flatMap(({ ask, answer }, index) => {
    const mine = ours[index]?.answer
    if (!mine) throw new Error(`${one.name}: the servers were asked different things`)
    const request = `${index + 1} ${ask.method} ${ask.path}`
    return compareAnswers(
      { topic: topic.name, case: one.name, request },
      ourNames.answer(mine, one),
      theirNames.answer(answer, one),
    )
  })
  return { differences, requests: theirs.length }
}

async function createNamespace(server: LiveServer, name: string): Promise<void> {
  const { code, text } = await server.answer(
    {
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    },
    name,
  )
  if (code !== 201 && code !== 409) throw new Error(`cannot make namespace ${name}: ${text}`)
}

function lanesOf(cases: readonly Case[]): Case[][] {
  const lanes = new Map<string, Case[]>()
  for (const one of cases) {
    const lane = one.lane ?? one.name
    lanes.set(lane, [...(lanes.get(lane) ?? []), one])
  }
  return [...lanes.values()]
}

/** Puts all cases of a topic to both servers. */
export async function runTopic(topic: Topic, servers: ServerPair): Promise<TopicOutcome> {
  const namespace = namespaceOf(topic)
  await Promise.all(
    [servers.ours, servers.theirs].map((server) => createNamespace(server, namespace)),
  )
  await Promise.all(
    [servers.ours, servers.theirs].map((server) =>
      exchangesOf(server, topic.before ?? [], namespace),
    ),
  )
  const left = lanesOf(topic.cases)
  const outcomes: TopicOutcome[] = []
  const work = async (): Promise<void> => {
    for (let lane = left.shift(); lane; lane = left.shift())
      for (const one of lane) outcomes.push(await runCase(topic, one, servers))
  }
  await Promise.all(Array.from({ length: lanesAtATime }, work))
  return {
    differences: outcomes.flatMap(({ differences }) => differences),
    requests: outcomes.reduce((sum, { requests }) => sum + requests, 0),
  }
}
