import type { KubeClient } from '../../client/index.ts'
import { hasReason, type KubeObject, wellKnownKinds } from '../../core/index.ts'
import { isConnectionFailure, joinFailure } from './api-failure.ts'
import { JoinFailed } from './join-failed.ts'
import { type RequestState, stateOfRequest } from './request-state.ts'

const { certificateSigningRequest: requestKind } = wellKnownKinds

/** What waiting takes. */
export interface Waiting {
  readonly client: KubeClient
  readonly name: string
  readonly onState: (state: RequestState) => void
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Between two looks, where the request cannot be watched. */
const lookAgainMs = 2_000

/** Waits until a request is answered with a certificate; lost connections are taken up again. */
export async function awaitCertificate(waiting: Waiting, signal: AbortSignal): Promise<string> {
  for (;;) {
    try {
      const found = await look(waiting, signal)
      if ('certificatePem' in found.state) return found.state.certificatePem
      const issued = await watch(waiting, found.from, signal)
      if (issued !== undefined) return issued
    } catch (error) {
      const failure = joinFailure(error, `a look at request ${waiting.name}`, signal)
      if (!(failure instanceof JoinFailed) || !failure.mayPass) throw failure
    }
    await waiting.pause(lookAgainMs, signal)
  }
}

async function look(
  { client, name, onState }: Waiting,
  signal: AbortSignal,
): Promise<{ readonly state: RequestState; readonly from: string }> {
  const found = await client.get(requestKind, { name }, signal)
  if (!found) throw gone(name)
  const state = stateOfRequest(found)
  onState(state)
  return { state, from: found.metadata.resourceVersion ?? '' }
}

/** The certificate if it came while watching; undefined if the watch ended or is not allowed. */
async function watch(
  waiting: Waiting,
  from: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { client, name, onState } = waiting
  const query = { fieldSelector: `metadata.name=${name}`, from }
  try {
    for await (const { type, object } of client.watch(requestKind, query, signal)) {
      if (type === 'DELETED') throw gone(name)
      if (type === 'BOOKMARK' || !isRequest(object, name)) continue
      const state = stateOfRequest(object)
      onState(state)
      if ('certificatePem' in state) return state.certificatePem
    }
  } catch (error) {
    if (!isConnectionFailure(error) && !hasReason(error, 'Forbidden', 'Expired')) throw error
  }
  return undefined
}

const isRequest = (object: KubeObject, name: string): boolean => object.metadata.name === name

const gone = (name: string): JoinFailed =>
  new JoinFailed('request-gone', `request ${name} was deleted before it was answered`, {
    hint: 'clusters clean up requests after a while: run the same again',
  })
