import { describe, expect, test } from 'vitest'
import { ApiError } from '../../core/index.ts'
import type { ProcessState } from './pod-object.ts'
import { claimAddress } from './registered-pod.ts'

const host = { clock: { now: () => 7, monotonic: () => 7 }, drain: new AbortController().signal }

const claim = (
  failure?: Error,
): { readonly told: ProcessState[]; readonly done: Promise<void> } => {
  const told: ProcessState[] = []
  const report = (state: ProcessState): Promise<void> => {
    told.push(state)
    return failure ? Promise.reject(failure) : Promise.resolve()
  }
  return { told, done: claimAddress({ report }, '127.0.0.1', host) }
}

describe('the address of a workload [ISS-W1]', () => {
  test('is told before the process runs', async () => {
    const { told, done } = claim()
    await done
    expect(told).toEqual([{ startedAt: 7, isPending: true, isReady: false, since: 7 }])
  })

  test('that is refused ends it with its own code', async () => {
    const { done } = claim(new ApiError('Forbidden', 'pod IP 127.0.0.1 is on loopback'))
    await expect(done).rejects.toMatchObject({
      code: 'POD_IP_REFUSED',
      message: expect.stringContaining('is on loopback'),
      hint: expect.stringContaining('--pod-ip'),
    })
  })

  test.each([
    ['a missing right', new ApiError('Forbidden', 'User "x" cannot update resource "pods/status"')],
    ['a server that is away', new Error('no answer from 127.0.0.1')],
  ])('has nothing to do with %s', async (_name, failure) => {
    await expect(claim(failure).done).rejects.toBe(failure)
  })
})
