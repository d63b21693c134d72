import { conditionOf, type SigningRequest } from './signing-request.ts'

const hourMs = 3_600_000
const pendingMs = 24 * hourMs

/** When a request has outlived its use: an hour after its end, a day after its start; as in Kubernetes. */
export function endOfRequest(request: SigningRequest): number {
  const ends = ['Approved', 'Denied', 'Failed'].flatMap((type) => {
    const condition = conditionOf(request, type)
    return condition ? [condition.atMs + hourMs] : []
  })
  return ends.length > 0 ? Math.min(...ends) : request.createdAtMs + pendingMs
}
