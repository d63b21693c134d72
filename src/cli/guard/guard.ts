import { defineCommand } from '../command.ts'
import { guardOptions } from '../guard-options.ts'

/** `sallyport guard`. */
export const guardCommand = defineCommand({
  command: 'sallyport guard',
  // What the proposal calls it.
  alias: 'forward-proxy',
  summary: "Stand before an add-on in its Pod: tell it each request's user, refuse all others",
  options: guardOptions,
  examples: [
    {
      line: 'sallyport guard --listen-on-pod-ip --listen-port 80 -forward-ip 127.0.0.1 --forward-port 80',
      does: 'in a Pod, before an add-on that listens on 127.0.0.1:80',
    },
    {
      line: 'sallyport guard --forward 8080=3000 --forward 9090=9000 --probe-path /healthz',
      does: "two ports, and the add-on's own health at port 8081",
    },
    {
      line: 'sallyport guard --forward 8080=3000 --audience default/demo --ca-file ca.crt',
      does: 'outside a cluster, for the Service default/demo',
    },
  ],
  run: async ({ options }, io) => {
    const { runGuard } = await import('./run.ts')
    await runGuard(options, io)
  },
})
