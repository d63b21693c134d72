/** The numbers of the packet types on the wire; 100 and above are ours. */
export const packetType = {
  DIAL_REQ: 0,
  DIAL_RSP: 1,
  CLOSE_REQ: 2,
  CLOSE_RSP: 3,
  DATA: 4,
  DIAL_CLS: 5,
  DRAIN: 6,
  CREDIT: 100,
  FIN: 101,
} as const

/** A packet type's name, as metrics and logs show it. */
export type PacketTypeName = keyof typeof packetType
