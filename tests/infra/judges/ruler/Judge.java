import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.nio.file.Path;
import java.util.List;
import software.amazon.event.ruler.Machine;

/**
 * Prints which rules of a bus match each of its events.
 *
 * The file has a JSON list of buses, each with its rules by name and its events; printed is a list of
 * as many lists of lists of names.
 */
public final class Judge {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        ArrayNode said = mapper.createArrayNode();
        for (JsonNode bus : mapper.readTree(Path.of(args[0]).toFile())) {
            Machine machine = Machine.builder().build();
            for (var rules = bus.get("rules").fields(); rules.hasNext(); ) {
                var rule = rules.next();
                machine.addRule(rule.getKey(), rule.getValue().toString());
            }
            ArrayNode matches = said.addArray();
            for (JsonNode event : bus.get("events")) {
                ArrayNode names = matches.addArray();
                List<String> found = machine.rulesForJSONEvent(event.toString());
                found.stream().sorted().forEach(names::add);
            }
        }
        System.out.println(mapper.writeValueAsString(said));
    }
}
