// prozess 0.7.0: `publish HOST PORT TOPIC message…` or `read HOST PORT TOPIC count`, which prints a JSON list.
const { Consumer, Producer } = require('prozess')
const [verb, host, port, topic, ...rest] = process.argv.slice(2)

if (verb === 'publish') {
  const producer = new Producer(topic, { host, port: Number(port) })
  producer.on('error', (error) => { throw error })
  producer.on('connect', () => producer.send(rest, (error) => {
    if (error) throw error
    process.exit(0) // its connections know no end()
  }))
  producer.connect()
} else {
  const consumer = new Consumer({ host, port: Number(port), topic, partition: 0, offset: 0 })
  const found = []
  consumer.connect((error) => {
    if (error) throw error
    const poll = () => consumer.consume((failure, messages) => {
      if (failure) throw failure
      for (const message of messages) found.push(message.payload.toString())
      if (found.length < Number(rest[0])) return setTimeout(poll, 50)
      console.log(JSON.stringify(found))
      process.exit(0)
    })
    poll()
  })
}
