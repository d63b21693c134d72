import { describe, expect, test } from 'vitest'
import { AgentMetadataInvalid, describeAgent, parseAgentIdentifiers } from './agent-session.ts'

const nothing = { hosts: [], cidrs: [], isDefaultRoute: false }

describe('[TUN-W20, TUN-U14] what an agent says it can reach', () => {
  test.each([
    ['nothing', '', nothing],
    ['an IPv4 address', 'ipv4=1.2.3.4', { ...nothing, hosts: ['1.2.3.4'] }],
    ['an IPv6 address', 'ipv6=FD00%3A%3A1', { ...nothing, hosts: ['fd00::1'] }],
    ['a host name', 'host=Node-1.local', { ...nothing, hosts: ['node-1.local'] }],
    ['a range', 'cidr=10.0.0.0/8', { ...nothing, cidrs: ['10.0.0.0/8'] }],
    ['a default route', 'default-route=true', { ...nothing, isDefaultRoute: true }],
    ['no default route', 'default-route=false', nothing],
    ['a default route in odd words', 'default-route=maybe', nothing],
    ['the first word on a default route', 'default-route=false&default-route=true', nothing],
    [
      'several of each',
      'ipv4=1.2.3.4&ipv4=1.2.3.5&host=a&cidr=10.0.0.0/8&cidr=fd00::/8&ipv6=::1',
      {
        hosts: ['1.2.3.4', '1.2.3.5', 'a', '::1'],
        cidrs: ['10.0.0.0/8', 'fd00::/8'],
        isDefaultRoute: false,
      },
    ],
    ['a uid, which means nothing here', 'uid=abc&host=a', { ...nothing, hosts: ['a'] }],
    ['a type of the future', 'zone=eu&host=a', { ...nothing, hosts: ['a'] }],
  ])('%s', (_name, text, expected) => {
    expect(parseAgentIdentifiers(text)).toEqual(expected)
  })

  test.each([
    ['a broken escape', 'host=%zz'],
    ['a semicolon', 'host=a;host=b'],
  ])('%s is refused', (_name, text) => {
    expect(() => parseAgentIdentifiers(text)).toThrow(AgentMetadataInvalid)
  })
})

describe('[TUN-W4, TUN-U11] the metadata of an agent', () => {
  test('names it once', () => {
    expect(describeAgent({ agentid: ['a'], agentidentifiers: ['host=n'] })).toEqual({
      agentId: 'a',
      identifiers: { ...nothing, hosts: ['n'] },
    })
  })

  test.each([
    ['no agent ID', {}, 'got 0'],
    ['an empty agent ID', { agentid: [''] }, 'one agent ID'],
    ['two agent IDs', { agentid: ['a', 'b'] }, 'got 2'],
    ['two sets of identifiers', { agentid: ['a'], agentidentifiers: ['', ''] }, 'got 2'],
    ['a bad encoding', { agentid: ['a'], agentidentifiers: ['host=%'] }, 'URL-encoded'],
  ])('with %s is refused', (_name, metadata, message) => {
    expect(() => describeAgent(metadata)).toThrow(message)
  })
})
