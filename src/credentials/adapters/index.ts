export * from './client-node.ts'
export * from './undici-dispatcher.ts'
export * from './web-socket.ts'
