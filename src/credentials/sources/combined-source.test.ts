import { beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import type { Credential, CredentialSource } from '../credential.ts'
import { combinedSource } from './combined-source.ts'
import { EventLog, FakeClock, FakePlugin, refusal401, tokenOfRun } from './fake-plugin.suite.ts'
import { RotatingSource } from './rotating-source.ts'
import { staticSource } from './source.ts'

const certificate = (run: number, expiresAt: number): Credential => ({
  token: new Secret('not this one'),
  clientCertificate: { certPem: `cert-${run}`, keyPem: new Secret(`key-${run}`) },
  expiresAt,
})

let clock: FakeClock
const rotating = (answer: (run: number) => Credential) =>
  new RotatingSource({
    fetch: new FakePlugin(answer).fetch,
    clock,
    observer: new EventLog(),
    random: () => 0,
  })

beforeEach(() => {
  clock = new FakeClock()
})

describe('two sources as one', () => {
  test('give the header of the one and the certificate of the other [CRED-R20]', async () => {
    const end = clock.now() + 60_000
    const both = combinedSource(
      rotating((run) => tokenOfRun(run, end + 1)),
      rotating((run) => certificate(run, end)),
    )
    const credential = await both.current()
    expect(credential.token?.reveal()).toBe('token-1')
    expect(credential.clientCertificate?.certPem).toBe('cert-1')
    expect(credential.expiresAt).toBe(end)
    expect(await both.current()).toBe(credential)
  })

  test('rotate when one of them does, and the other keeps its part', async () => {
    const both = combinedSource(
      rotating((run) => tokenOfRun(run)),
      staticSource(certificate(1, clock.now() + 60_000)),
    )
    const seen: [Credential, Credential][] = []
    both.onRotate((next, previous) => seen.push([next, previous]))
    const used = await both.current()
    const renewed = await both.renew(used, refusal401)
    expect(renewed?.token?.reveal()).toBe('token-2')
    expect(renewed?.clientCertificate?.certPem).toBe('cert-1')
    expect(seen).toEqual([[renewed, used]])
    expect(await both.current()).toBe(renewed)
  })

  test('have nothing new if neither has', async () => {
    const both = combinedSource(
      staticSource(tokenOfRun(1)),
      staticSource(certificate(1, clock.now() + 60_000)),
    )
    expect(await both.renew(await both.current(), refusal401)).toBeUndefined()
    expect(await both.renew(tokenOfRun(9), refusal401)).toBeUndefined()
  })

  test('are that source if they are the same', () => {
    const one = staticSource(tokenOfRun(1))
    expect(combinedSource(one, one)).toBe(one)
  })

  test('are listened to only while somebody listens', async () => {
    let listening = 0
    const watched: CredentialSource = {
      ...staticSource({}),
      onRotate: () => {
        listening++
        return () => void listening--
      },
    }
    const both = combinedSource(watched, staticSource({}))
    await both.current()
    expect(listening).toBe(0)
    const stops = [both.onRotate(() => {}), both.onRotate(() => {})]
    expect(listening).toBe(1)
    for (const stop of stops) stop()
    expect(listening).toBe(0)
  })

  test('end together', async () => {
    const header = rotating((run) => tokenOfRun(run))
    combinedSource(header, staticSource({})).dispose()
    await expect(header.current()).rejects.toMatchObject({ code: 'DISPOSED' })
  })
})
