import { describe, expect, test } from 'vitest'
import { ConnectionFailed, NoAddressReachable } from '../../credentials/transport/index.ts'
import { addressFailures, lostBy } from './errors.ts'

const system = (code: string): Error => Object.assign(new Error(code), { code })
const wrapped = (cause: unknown): Error => new ConnectionFailed('no answer from a', { cause })
const silent = new ConnectionFailed('no connection to a within 10 s')
const at = (...causes: unknown[]) =>
  causes.map((cause, index) => ({ address: `https://${index}`, cause }))

describe('why a cluster cannot be reached [DISC-R48]', () => {
  test.each([
    ['nothing listens', at(system('ECONNREFUSED')), 'all-addresses-gone'],
    ['nobody answers', at(silent), 'all-addresses-gone'],
    ['the name is gone', at(wrapped(system('ENOTFOUND'))), 'all-addresses-gone'],
    ['all of several', at(system('EHOSTUNREACH'), silent), 'all-addresses-gone'],
    ['another root', at(wrapped(system('SELF_SIGNED_CERT_IN_CHAIN'))), 'all-roots-rotated'],
    ['another CA of that name', at(system('CERT_SIGNATURE_FAILURE')), 'all-roots-rotated'],
    [
      'one is gone, one has another root',
      at(system('ECONNREFUSED'), system('UNABLE_TO_VERIFY_LEAF_SIGNATURE')),
      'all-roots-rotated',
    ],
    ['a certificate for other names', at(system('ERR_TLS_CERT_ALTNAME_INVALID')), undefined],
    ['a certificate that has expired', at(system('CERT_HAS_EXPIRED')), undefined],
    ['an answer that is none', at(new Error('nonsense')), undefined],
    ['one is gone, one says something', at(system('ECONNREFUSED'), new Error('x')), undefined],
    ['no address', [], undefined],
  ])('%s', (_name, failures, reason) => {
    expect(lostBy(failures)?.reason).toBe(reason)
  })

  test('is told address by address', () => {
    const failures = at(system('ECONNREFUSED'), silent)
    const error = new NoAddressReachable('none', failures)
    expect(addressFailures(error, 'x')).toBe(failures)
    expect(addressFailures(wrapped(error), 'x')).toBe(failures)
    expect(addressFailures(silent, 'https://x')).toEqual([{ address: 'https://x', cause: silent }])
    expect(lostBy(failures)?.message).toContain('https://0: ECONNREFUSED; https://1: no connection')
  })
})
