/** The people and things of one small story. The examples in the descriptions are made of them, and so fit each other. */
export const samples = {
  host: {
    id: '01KERMBJX041AZ0J0JZ1VZ0JN2',
    email: 'ada@example.com',
    name: 'Ada Moreno',
    avatarUrl: 'https://api.example.com/v1/avatars/7/AM.svg',
  },
  guest: {
    id: '01KGJ9DYC00JJT325P6VPWX1VJ',
    email: 'ben@example.com',
    name: 'Ben Okafor',
    since: '2026-02-03T17:40:00.000Z',
    avatarUrl: 'https://api.example.com/v1/avatars/3/BO.svg',
    externalId: 'customer-4711',
  },
  admin: { id: '01KE6SJT805JP704N1SNK8YPEK', name: 'Grace Kim' },
  conversationId: '01KJPX35R0ZDWXCMX34MVGW7QM',
  conversationSince: '2026-03-02T09:12:00.000Z',
  messageId: '01KJPY44E0VK5TA16MX9XFEFHY',
  ticketId: '01KJPY44E0KNM7KKYK5Z5CDZ4Y',
  ticketMessageId: '01KJPY44E04YXPVN5P2C7PKNMK',
  notificationId: '01KJPY44E0R1NPJ2YD95BPFW7G',
  broadcastId: '01KJPY44E0T4AAKE9QYVM3AJ7G',
  /** Of any other record. */
  recordId: '01KJPY44E08NJ5TDAW7A257Y49',
  callId: 'call-2048',
  time: '2026-03-02T09:30:00.000Z',
  later: '2027-03-02T09:30:00.000Z',
  password: 'seven green bicycles',
  code: '492039',
  accessToken:
    'eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIwMUtHSjlEWUMwMEpKVDMyNVA2VlBXWDFWSiJ9.c2lnbmF0dXJl',
  refreshToken: 'rt_tL7vV466OWRooNWgbEawpFdSnpeuFupCyXB2p1QnzQc',
  oneTimeToken: 'ZF_DOcRoTq-tIZAhIR8vDJqB04bSOdTjeRzUGS1JUHc',
  text: 'See you at ten?',
  file: {
    id: 'tL7vV466OWRooNWgbEawpFdSnpeuFupCyXB2p1QnzQc',
    url: 'https://api.example.com/v1/files/tL7vV466OWRooNWgbEawpFdSnpeuFupCyXB2p1QnzQc/plan.pdf',
    name: 'plan.pdf',
    size: 48_213,
    type: 'application/pdf',
  },
  ticket: {
    subject: 'My payout is late',
    text: 'I have waited for my payout since Monday.',
    answer: 'It is on its way and arrives tomorrow.',
  },
} as const
