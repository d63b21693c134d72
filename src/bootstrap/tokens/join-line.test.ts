import { describe, expect, test } from 'vitest'
import { joinLine, kubeadmJoinLine, parseBootstrapToken } from './bootstrap-token.ts'

const text = 'abcdef.0123456789abcdef'
const pins = ['sha256:aa', 'sha256:bb']
const invitation = { server: 'https://10.0.0.1:6443', pins, token: parseBootstrapToken(text) }
const flags = `--token ${text} --discovery-token-ca-cert-hash sha256:aa --discovery-token-ca-cert-hash sha256:bb`

describe('the line by which a machine joins [DISC-S4]', () => {
  test('has the token and the pin of every root, for both programs', () => {
    expect(joinLine(invitation)).toBe(`sallyport join 10.0.0.1:6443 ${flags}`)
    expect(kubeadmJoinLine(invitation)).toBe(`kubeadm join 10.0.0.1:6443 ${flags}`)
  })

  test('names the node that the token is bound to: another would be refused', () => {
    const bound = { ...invitation, nodeName: 'worker-1' }
    expect(joinLine(bound)).toBe(`sallyport join 10.0.0.1:6443 ${flags} --node-name worker-1`)
    expect(kubeadmJoinLine(bound)).toBe(`kubeadm join 10.0.0.1:6443 ${flags} --node-name worker-1`)
  })

  test('has no pin where the roots of the system count too, which would be refused', () => {
    const open = { ...invitation, systemRoots: true }
    expect(joinLine(open)).toBe(`sallyport join 10.0.0.1:6443 --token ${text}`)
    expect(kubeadmJoinLine(open)).toBe(`kubeadm join 10.0.0.1:6443 ${flags}`)
  })

  test.each([
    ['https://api.example.com', 'api.example.com:443'],
    ['https://[::1]:6443', '[::1]:6443'],
    ['https://api.example.com/c1', 'https://api.example.com/c1'],
  ])('to %s asks %s', (server, address) => {
    expect(joinLine({ ...invitation, server })).toContain(`sallyport join ${address} --token`)
  })

  test.each([
    ['a path', { server: 'https://api.example.com/c1' }],
    ['a longer secret', { token: parseBootstrapToken(`${text}0`) }],
    ['no pin', { pins: [] }],
  ])('is none for kubeadm with %s', (_name, change) => {
    expect(kubeadmJoinLine({ ...invitation, ...change })).toBeUndefined()
  })
})
