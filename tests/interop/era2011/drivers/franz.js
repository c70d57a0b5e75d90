// franz-kafka 0.7.5: `publish HOST PORT TOPIC message…` (`publish-gzip` compresses) or `read HOST PORT TOPIC count`.
const Kafka = require('franz-kafka')
const [verb, host, port, topicName, ...rest] = process.argv.slice(2)
const kafka = new Kafka({
  brokers: [{ id: 0, host, port: Number(port) }],
  compression: verb === 'publish-gzip' ? 'gzip' : 'none',
  queueTime: 20,
  maxFetchDelay: 100
})

kafka.connect(() => {
  const topic = kafka.topic(topicName, { partitions: { consume: ['0-0'], produce: ['0:1'] } })
  topic.on('error', (error) => { throw error })
  if (verb.startsWith('publish')) {
    // Its callback fires before anything is sent, so this program cannot know when to leave: it is ended from outside.
    for (const message of rest) topic.write(message)
  } else {
    const found = []
    topic.on('data', (data) => {
      found.push(data.toString())
      if (found.length < Number(rest[0])) return
      console.log(JSON.stringify(found))
      process.exit(0)
    })
    topic.resume()
  }
})
