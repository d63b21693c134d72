import { describe, expect, test } from 'vitest'
import { startJoin } from './join-lab.suite.ts'

describe('what cannot work is told before anything is read or sent', () => {
  const token = 'abcdef.q7w8e9r0t1y2u3i4'
  test.each([
    [['--cluster-info-file', 'a', '--cluster-info-url', 'https://b'], 'different ways'],
    [['--cluster-info-file', 'a', '--discovery-file', 'b'], 'different ways'],
    [['host', '--token', token, '--cluster-info-file', 'a'], 'different ways'],
    [['--discovery-token', token, '--cluster-info-url', 'https://a'], 'different ways'],
    [['host', '--token', token, '--token-file', 'a'], 'say the same'],
    [['--cluster-info-file', '-', '--token', '-'], 'standard input can be read for one thing'],
    [['host'], 'a token is missing'],
    [['--discovery-token', token], 'ADDRESS is missing'],
    [[], 'ADDRESS is missing'],
    [['--as', 'user'], '--as user needs a name'],
    [['jane', '--as', 'user', '--token', token], 'ADDRESS is missing'],
    // The last word is the name all the same: it is no address to send anything to.
    [['jane', '--as', 'user', '--discovery-only', '--token', token], '--as user NAME'],
    [['--cluster-info-file', 'a'], 'a token that gets the certificate is missing'],
    [['host', '--token', 'abcdef'], 'not of the form id.secret'],
    [['--cluster-info-file', 'a', '--token', 'abcdef'], 'not of the form id.secret'],
    [['host', '--token', token, '--tls-bootstrap-token', 'x.y'], 'not of the form id.secret'],
    [['http://host', '--token', token], 'clear text'],
    [['host', '--token', token, '--discovery-token-ca-cert-hash', 'x'], 'no pin of a CA'],
    [['host', '--token', token, '--node-name', 'A_B'], 'cannot be the name of a node'],
    [['host', 'system:x', '--token', token, '--as', 'user'], "the cluster's own"],
    [
      ['host', 'x', '--token', token, '--as', 'user', '--group', 'system:masters'],
      'system:masters',
    ],
    [['host', '--token', token, '--group', 'x'], '--group goes with --as user'],
    [['--discovery-file', 'x', '--token', token, '--keep-address'], '--keep-address goes with'],
    [['--discovery-file', 'x', '--token', token, '--require-jwt'], '--require-jwt goes with'],
    [['host', 'x', '--token', token, '--as', 'user', '--tunnel-agent'], '--as node only'],
    [['host', '--token', token, '--tunnel-agent', '--out', '-'], 'needs files'],
    [['host', '--token', token, '--renew', '--force'], '--renew is for a certificate in a file'],
    [['--discovery-file', 'http://host/x', '--token', token], 'must begin with https://'],
  ])('%j [DISC-R15]', async (args, said) => {
    const { code, stdout, stderr } = await startJoin(args).ended
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(said)])
    expect(stderr).not.toContain('q7w8e9r0t1y2u3i4')
  })
  test('a token in the environment and a file with one, which is meant is not known', async () => {
    const env = { SALLYPORT_TOKEN: token }
    const { code, stderr } = await startJoin(['host', '--token-file', 'a'], env).ended
    expect([code, stderr]).toEqual([2, expect.stringContaining('--token (or SALLYPORT_TOKEN) and')])
  })
})
